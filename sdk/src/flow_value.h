#pragma once

#include <string_view>

#include "gantry/config.h"

namespace gantry {

/// Reads the value of an override: YAML on one line. A plain or quoted scalar, `[1, 2]`, `{NAME: Adam}`,
/// or null (also ~ and nothing at all). A plain scalar outside of brackets is the whole text.
/// Throws ConfigError.
Config parse_flow_value(std::string_view text, const SourceLocation& where);

}  // namespace gantry
