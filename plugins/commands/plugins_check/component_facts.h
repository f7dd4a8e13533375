#pragma once

#include <gantry/catalogue.h>

#include <optional>
#include <string>
#include <vector>

namespace plugins_check {

/// What a component declares, as a child process found it: here, nothing of the plugin is loaded.
struct ComponentFacts {
  struct Key {
    std::string name;
    std::string type;  ///< "a number"
    std::string kind;  ///< of a nested component
    bool required = false;
  };
  std::vector<Key> keys;
  bool triggers_backward = false;

  const Key* key(std::string_view name) const;
};

/// One line for the parent process; what else the plugin prints stands on other lines.
std::string facts_line(const gantry::ComponentInfo& component);
/// The facts in what a child printed; none when it did not come so far.
std::optional<ComponentFacts> read_facts(const std::string& printed);

}  // namespace plugins_check
