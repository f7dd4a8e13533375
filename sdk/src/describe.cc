#include "gantry/describe.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "gantry/json.h"
#include "gantry/text.h"

namespace gantry {
namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string one_line(const Config& value) {
  std::vector<std::string> parts;
  if (value.type() == Config::Type::map) {
    for (const Config::Entry& entry : value.entries()) parts.push_back(cat(entry.key, ": ", one_line(entry.value)));
    return "{" + join(parts, ", ") + "}";
  }
  if (value.type() == Config::Type::list) {
    for (const Config& item : value.items()) parts.push_back(one_line(item));
    return "[" + join(parts, ", ") + "]";
  }
  std::string text = value.yaml();
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

/// "an integer, steps, >= 1"
std::string traits(const Parameter& parameter) {
  std::string text = value_type_text(parameter.type());
  if (!parameter.kind().empty()) text += " of kind " + parameter.kind();
  if (parameter.type() == ValueType::interval && parameter.unit() == "loop")
    text += ", epochs (iterations with MAX_STEPS)";
  else if (!parameter.unit().empty())
    text += ", " + parameter.unit();
  if (const std::string range = parameter.range_text(); !range.empty()) text += ", " + range;
  if (!parameter.choices().empty()) text += ", one of " + join(parameter.choices(), " | ");
  return text;
}

std::string parameters_text(const Parameters& parameters, const std::string& indent = "  ") {
  std::size_t width = 0;
  for (const Parameter& parameter : parameters.all()) width = std::max(width, parameter.name().size());
  std::string text;
  for (const Parameter& parameter : parameters.all()) {
    const Config& value = parameter.default_value();
    text += cat(indent, padded(parameter.name(), width), "  ",
                parameter.required() ? "required"
                : value.is_null()    ? "optional"
                                     : "default " + one_line(value),
                "; ", traits(parameter), '\n');
    const std::string below = indent + std::string(width + 2, ' ');
    if (!parameter.help().empty()) text += cat(below, parameter.help(), '\n');
    if (parameter.keys() != nullptr) text += parameters_text(*parameter.keys(), below);
  }
  return text;
}

/// YAML to paste: under the usual key of the kind, or as an item of a list.
std::string yaml_template(const ComponentInfo& info) {
  std::string key = info.kind.empty() ? "ENV" : info.kind == "dataset" ? "TRAIN_DATA" : info.kind;
  std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::toupper(c); });
  const bool item = info.kind == "hook" || info.kind == "metric" || info.kind == "transform";
  std::string text;
  if (!item) text += key + ":\n";
  if (!info.kind.empty()) text += cat(item ? "- " : "  ", "NAME: ", info.name, '\n');
  for (const Parameter& parameter : info.parameters.all()) {
    const bool given = !parameter.default_value().is_null();
    text += cat("  ", given || parameter.required() ? "" : "# ", parameter.name(), ':',
                given ? " " + one_line(parameter.default_value()) : "", "  # ",
                parameter.required() ? "required: " : "", traits(parameter), '\n');
    if (parameter.keys() == nullptr) continue;
    const bool list = parameter.type() == ValueType::sections;
    for (const Parameter& key : parameter.keys()->all()) {
      const bool first = &key == &parameter.keys()->all().front();
      text += cat("  #   ", list ? first ? "- " : "  " : "", key.name(), ":  # ", traits(key), '\n');
    }
  }
  return text;
}

std::string parameters_json(const Parameters* parameters);

std::string parameter_json(const Parameter& parameter) {
  std::vector<std::string> choices;
  for (const std::string& choice : parameter.choices()) choices.push_back(json_string(choice));
  const Config& value = parameter.default_value();
  return json_object({{"name", json_string(parameter.name())},
                      {"type", json_string(value_type_text(parameter.type()))},
                      {"kind", json_string(parameter.kind())},
                      {"keys", parameters_json(parameter.keys())},
                      {"required", parameter.required() ? "true" : "false"},
                      {"default", value.is_null() ? "null" : json_string(one_line(value))},
                      {"unit", json_string(parameter.unit())},
                      {"range", json_string(parameter.range_text())},
                      {"choices", json_array(choices)},
                      {"affects_result", parameter.affects_result() ? "true" : "false"},
                      {"help", json_string(parameter.help())}});
}

std::string parameters_json(const Parameters* parameters) {
  std::vector<std::string> items;
  if (parameters != nullptr)
    for (const Parameter& parameter : parameters->all()) items.push_back(parameter_json(parameter));
  return json_array(items);
}

std::string foreign_json(const Parameters& parameters) {
  std::vector<std::string> items;
  for (const Parameters::Foreign& key : parameters.foreign_keys()) {
    std::vector<std::string> neutral;
    for (const std::string& value : key.neutral) neutral.push_back(json_string(value));
    items.push_back(json_object(
        {{"name", json_string(key.name)}, {"neutral", json_array(neutral)}, {"instead", json_string(key.instead)}}));
  }
  return json_array(items);
}

}  // namespace

std::string component_text(const ComponentInfo& info) {
  std::string text = cat(info.kind, info.kind.empty() ? "" : " ", info.name, '\n');
  if (!info.summary.empty()) text += cat("  ", info.summary, '\n');
  if (!info.plugin.empty()) text += cat("  from ", info.origin(), '\n');
  // A command is no part of a configuration: its own usage says what it takes.
  if (info.kind == "command") return text;
  if (info.parameters.is_neutral()) text += "  Changes nothing that is computed.\n";
  if (info.parameters.is_single_instance()) text += "  At most once in a solver.\n";
  if (info.parameters.does_trigger_backward()) text += "  Runs the backward pass.\n";
  if (!info.parameters.all().empty()) text += "\nparameters\n" + parameters_text(info.parameters);
  return text + "\nyaml\n" + yaml_template(info);
}

std::string component_json(const ComponentInfo& info) {
  return json_object({{"kind", json_string(info.kind)},
                      {"name", json_string(info.name)},
                      {"summary", json_string(info.summary)},
                      {"plugin", json_string(info.plugin)},
                      {"version", json_string(info.version)},
                      {"file", json_string(info.file)},
                      {"parameters", parameters_json(&info.parameters)},
                      {"foreign", foreign_json(info.parameters)}});
}

std::string components_text(const std::vector<ComponentInfo>& components) {
  std::size_t width = 0;
  for (const ComponentInfo& info : components) width = std::max(width, info.name.size());
  std::string text;
  std::string_view kind;
  for (const ComponentInfo& info : components) {
    if (kind != info.kind) text += cat(kind.empty() ? "" : "\n", info.kind, '\n');
    kind = info.kind;
    text += cat("  ", padded(info.name, width), "  ", info.summary, " [", info.plugin, ' ', info.version, "]\n");
  }
  return text;
}

std::string components_json(const std::vector<ComponentInfo>& components) {
  std::vector<std::string> items;
  for (const ComponentInfo& info : components) items.push_back(component_json(info));
  return json_array(items);
}

}  // namespace gantry
