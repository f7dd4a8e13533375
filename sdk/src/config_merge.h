#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/config.h"

namespace gantry {

/// `later` over `earlier`: maps merge key by key, everything else is replaced, and so is a component by one
/// of another NAME, whose keys are other keys. In a map of `later`, "+KEY" appends to an inherited list, and
/// "KEY[NAME]" or "KEY[0]" merges into one of its items.
Config merge(const Config& earlier, const Config& later, std::vector<ConfigError>& problems);

/// A key with what follows it in brackets: "HOOKS[LogHook]" is {"HOOKS", {"LogHook"}}.
struct KeySelectors {
  std::string key;
  std::vector<std::string> selectors;
};
/// std::nullopt when the brackets do not match.
std::optional<KeySelectors> split_selectors(std::string_view text);

/// The index of the item that `selector` names, by position or by NAME. Throws ConfigError, of the place
/// `where`, when there is none or when several have that NAME.
std::size_t find_item(const Config& list, std::string_view list_name, const std::string& selector,
                      const SourceLocation& where);

}  // namespace gantry
