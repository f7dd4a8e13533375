#pragma once

#include <vector>

#include "gantry/config.h"

/// SOLVER.MODE: which of a configuration's parts a run uses.
namespace gantry {

/// Whether this solver trains.
bool trains(const Config& solver);
/// What MODE needs and the configuration does not have. Of a resolved solver that declares MODE.
void check_mode(const Config& solver, std::vector<ConfigError>& problems);
/// The solver without the parts that its MODE does not use.
Config for_mode(const Config& solver);

}  // namespace gantry
