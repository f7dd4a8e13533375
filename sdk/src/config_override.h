#pragma once

#include <string>

#include "gantry/config.h"

namespace gantry {

/// `config` with "A.B[LogHook].C=value" applied. The value is read by parse_flow_value and replaces what was
/// there; maps that are missing on the way are made, so that a misspelt key is reported by the validation,
/// with its near match. Throws ConfigError.
Config apply_override(const Config& config, const std::string& text);

}  // namespace gantry
