#include "component_facts.h"

#include <gantry/error.h>
#include <gantry/json.h>
#include <gantry/json_value.h>

#include <sstream>
#include <variant>

namespace plugins_check {

namespace {

constexpr std::string_view kMark = "plugins check: ";
constexpr int kDepth = 8;

std::string text_of(const gantry::JsonValue& object, std::string_view name) {
  const gantry::JsonValue* value = object.member(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->scalar);
  return text == nullptr ? std::string() : *text;
}

bool truth_of(const gantry::JsonValue& object, std::string_view name) {
  const gantry::JsonValue* value = object.member(name);
  const bool* truth = value == nullptr ? nullptr : std::get_if<bool>(&value->scalar);
  return truth != nullptr && *truth;
}

}  // namespace

const ComponentFacts::Key* ComponentFacts::key(std::string_view name) const {
  for (const Key& key : keys)
    if (key.name == name) return &key;
  return nullptr;
}

std::string facts_line(const gantry::ComponentInfo& component) {
  std::vector<std::string> keys;
  for (const gantry::Parameter& parameter : component.parameters.all())
    keys.push_back(gantry::json_object({{"name", gantry::json_string(parameter.name())},
                                        {"type", gantry::json_string(gantry::value_type_text(parameter.type()))},
                                        {"kind", gantry::json_string(parameter.kind())},
                                        {"required", parameter.required() ? "true" : "false"}}));
  const bool backward = component.parameters.does_trigger_backward();
  return std::string(kMark) +
         gantry::json_object({{"triggers_backward", backward ? "true" : "false"}, {"keys", gantry::json_array(keys)}});
}

std::optional<ComponentFacts> read_facts(const std::string& printed) {
  std::istringstream in(printed);
  for (std::string line; std::getline(in, line);) {
    const std::size_t mark = line.find(kMark);
    if (mark == std::string::npos) continue;
    try {
      const gantry::JsonValue value = gantry::read_json(std::string_view(line).substr(mark + kMark.size()), kDepth);
      ComponentFacts facts;
      facts.triggers_backward = truth_of(value, "triggers_backward");
      if (const gantry::JsonValue* keys = value.member("keys"))
        for (const gantry::JsonValue& key : keys->items)
          facts.keys.push_back(
              {text_of(key, "name"), text_of(key, "type"), text_of(key, "kind"), truth_of(key, "required")});
      return facts;
    } catch (const gantry::Error&) {
      continue;  // a line of the plugin's
    }
  }
  return std::nullopt;
}

}  // namespace plugins_check
