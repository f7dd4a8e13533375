#include <algorithm>
#include <cctype>
#include <iomanip>
#include <iostream>

#include "gantry/compose.h"
#include "gantry/json.h"
#include "gantry/text.h"
#include "host/arguments.h"
#include "host/commands.h"
#include "host/console_log.h"
#include "host/plugin_catalogue.h"
#include "host/search_path.h"

/// list and describe.

namespace gantry::host {
namespace {

PluginCatalogue make_catalogue(const Arguments& arguments) {
  const auto log = std::make_shared<ConsoleLog>(ConsoleLog::Stream::err, LogLevel::warn);
  return PluginCatalogue(PluginIndex(search_path(arguments.plugin_dir_values(), Config())), Logger(log, ""));
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
  if (!parameter.unit().empty()) text += ", " + parameter.unit();
  if (const std::string range = parameter.range_text(); !range.empty()) text += ", " + range;
  if (!parameter.choices().empty()) text += ", one of " + join(parameter.choices(), " | ");
  return text;
}

void print_parameters(const Parameters& parameters) {
  std::size_t width = 0;
  for (const Parameter& parameter : parameters.all()) width = std::max(width, parameter.name().size());
  for (const Parameter& parameter : parameters.all()) {
    const Config& value = parameter.default_value();
    std::cout << "  " << std::left << std::setw(static_cast<int>(width)) << parameter.name() << "  "
              << (parameter.required() ? "required"
                  : value.is_null()    ? "optional"
                                       : "default " + one_line(value))
              << "; " << traits(parameter) << '\n';
    if (!parameter.help().empty()) std::cout << std::string(width + 4, ' ') << parameter.help() << '\n';
  }
}

/// YAML to paste: under the usual key of the kind, or as an item of a list.
void print_template(const ComponentInfo& info) {
  std::string key = info.kind.empty() ? "ENV" : info.kind == "dataset" ? "TRAIN_DATA" : info.kind;
  std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::toupper(c); });
  const bool item = info.kind == "hook" || info.kind == "metric" || info.kind == "transform";
  if (!item) std::cout << key << ":\n";
  if (!info.kind.empty()) std::cout << (item ? "- " : "  ") << "NAME: " << info.name << '\n';
  for (const Parameter& parameter : info.parameters.all()) {
    const bool given = !parameter.default_value().is_null();
    std::cout << "  " << (given || parameter.required() ? "" : "# ") << parameter.name() << ':'
              << (given ? " " + one_line(parameter.default_value()) : "") << "  # "
              << (parameter.required() ? "required: " : "") << traits(parameter) << '\n';
  }
}

void print_component(const ComponentInfo& info) {
  std::cout << info.kind << (info.kind.empty() ? "" : " ") << info.name << '\n';
  if (!info.summary.empty()) std::cout << "  " << info.summary << '\n';
  if (!info.plugin.empty()) std::cout << "  from " << info.origin() << '\n';
  if (info.parameters.is_neutral()) std::cout << "  Changes nothing that is computed.\n";
  if (info.parameters.is_single_instance()) std::cout << "  At most once in a solver.\n";
  if (info.parameters.does_trigger_backward()) std::cout << "  Runs the backward pass.\n";
  if (!info.parameters.all().empty()) std::cout << "\nparameters\n";
  print_parameters(info.parameters);
  std::cout << "\nyaml\n";
  print_template(info);
}

std::string parameter_json(const Parameter& parameter) {
  std::vector<std::string> choices;
  for (const std::string& choice : parameter.choices()) choices.push_back(json_string(choice));
  const Config& value = parameter.default_value();
  return json_object({{"name", json_string(parameter.name())},
                      {"type", json_string(value_type_text(parameter.type()))},
                      {"kind", json_string(parameter.kind())},
                      {"required", parameter.required() ? "true" : "false"},
                      {"default", value.is_null() ? "null" : json_string(one_line(value))},
                      {"unit", json_string(parameter.unit())},
                      {"range", json_string(parameter.range_text())},
                      {"choices", json_array(choices)},
                      {"affects_result", parameter.affects_result() ? "true" : "false"},
                      {"help", json_string(parameter.help())}});
}

std::string component_json(const ComponentInfo& info) {
  std::vector<std::string> parameters;
  for (const Parameter& parameter : info.parameters.all()) parameters.push_back(parameter_json(parameter));
  return json_object({{"kind", json_string(info.kind)},
                      {"name", json_string(info.name)},
                      {"summary", json_string(info.summary)},
                      {"plugin", json_string(info.plugin)},
                      {"version", json_string(info.version)},
                      {"file", json_string(info.file)},
                      {"parameters", json_array(parameters)}});
}

void print_json(const std::vector<ComponentInfo>& components) {
  std::vector<std::string> items;
  for (const ComponentInfo& info : components) items.push_back(component_json(info));
  std::cout << json_array(items) << std::endl;
}

/// What `list` shows of a component: also of one whose plugin cannot be used.
ComponentInfo listed(const std::string& kind, const std::string& name, PluginCatalogue& catalogue) {
  try {
    return *catalogue.find(kind, name, "", {"gantry list", 0, 0});
  } catch (const ConfigError&) {
    const PluginFile& file = *catalogue.index().providers(kind, name).front();
    return {kind,      name, "(cannot be used: see gantry plugins list)", file.note->name, file.note->version,
            file.path, {}};
  }
}

void print_list(const std::vector<ComponentInfo>& rows) {
  std::size_t width = 0;
  for (const ComponentInfo& row : rows) width = std::max(width, row.name.size());
  std::string kind;
  for (const ComponentInfo& row : rows) {
    if (kind != row.kind) std::cout << (kind.empty() ? "" : "\n") << row.kind << '\n';
    kind = row.kind;
    std::cout << "  " << std::left << std::setw(static_cast<int>(width)) << row.name << "  " << row.summary << " ["
              << row.plugin << ' ' << row.version << "]\n";
  }
}

std::vector<ComponentInfo> described(const std::string& name, PluginCatalogue& catalogue) {
  if (name == "ENV") return {{"", name, "The process: seed, device, threads.", "", "", "", env_parameters()}};
  std::vector<ComponentInfo> found;
  for (const std::string& kind : catalogue.index().kinds_of(name))
    found.push_back(*catalogue.find(kind, name, "", {"gantry describe", 0, 0}));
  if (!found.empty()) return found;
  const std::vector<std::string> near = near_matches(name, catalogue.names(""));
  const std::string hint = catalogue.hint("", name);
  fail_usage("describe", cat("no plugin provides '", name, "'",
                             near.empty() ? "; gantry list shows all" : "; did you mean " + join(near, " or ") + "?",
                             hint.empty() ? "" : "\n", hint));
}

}  // namespace

int command_list(const std::vector<std::string>& words) {
  std::vector<std::string> kinds = known_kinds();
  Arguments arguments(
      "list", "[KIND]",
      "Lists the components that a configuration can name, of one kind or all:\n" + join(kinds, ", ") + ".");
  arguments.flag("json", "print a JSON array").plugin_dirs();
  if (!arguments.parse(words, 0, 1)) return kExitDone;
  if (!arguments.operands().empty()) {
    const std::string& kind = arguments.operands()[0];
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      fail_usage("list", cat("unknown kind '", kind, "'; known: ", join(kinds, ", ")));
    kinds = {kind};
  }
  PluginCatalogue catalogue = make_catalogue(arguments);
  std::vector<ComponentInfo> rows;
  for (const std::string& kind : kinds)
    for (const std::string& name : catalogue.names(kind)) rows.push_back(listed(kind, name, catalogue));
  if (arguments.has("json")) {
    print_json(rows);
  } else if (rows.empty()) {
    std::cout << "nothing found; searched for plugins in\n" << catalogue.index().directories_text();
  } else {
    print_list(rows);
  }
  return kExitDone;
}

int command_describe(const std::vector<std::string>& words) {
  Arguments arguments("describe", "NAME",
                      "Shows what a component does, its parameters, and YAML to start from. ENV is a name, too.");
  arguments.flag("json", "print a JSON array").plugin_dirs();
  if (!arguments.parse(words, 1, 1)) return kExitDone;
  PluginCatalogue catalogue = make_catalogue(arguments);
  const std::vector<ComponentInfo> found = described(arguments.operands()[0], catalogue);
  if (arguments.has("json")) return print_json(found), kExitDone;
  for (const ComponentInfo& info : found) {
    if (&info != &found.front()) std::cout << '\n';
    print_component(info);
  }
  return kExitDone;
}

}  // namespace gantry::host
