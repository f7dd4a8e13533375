#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gantry/config.h"

namespace gantry {

/// `config` with ${VAR} and ${VAR:-default} replaced in its scalars; the default also stands in for an empty
/// variable. What a plain scalar becomes is plain: a number if it looks like one. `$${` is a literal "${".
Config substitute_variables(const Config& config,
                            const std::function<std::optional<std::string>(const std::string&)>& variable,
                            std::vector<ConfigError>& problems);

}  // namespace gantry
