#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gantry/checkpoint.h"
#include "gantry/config.h"
#include "gantry/log.h"

/// Which checkpoint RESUME_FROM means.
namespace gantry {

/// A path: there and whole, or a ConfigError at SOLVER.RESUME_FROM.
CheckpointInfo named_checkpoint(const Config& solver);

/// auto: the newest whole one; none where there is no checkpoint at all. Says for each newer one why it was passed
/// over; a ConfigError where there are only such. `damaged` receives the names of those whose files do not hold.
std::optional<CheckpointInfo> newest_checkpoint(const CheckpointStore& store, const Config& solver,
                                                const Logger& logger, std::vector<std::string>& damaged);

}  // namespace gantry
