#pragma once

#include "gantry/parameters.h"

namespace gantry {

/// The unit that a bare number has as the value of this interval.
Interval::Unit bare_unit(const Parameter& parameter);

}  // namespace gantry
