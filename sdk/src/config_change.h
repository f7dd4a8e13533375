#pragma once

#include <string>
#include <vector>

#include "gantry/checkpoint.h"
#include "gantry/config.h"
#include "gantry/log.h"
#include "run_facts.h"

/// Settings that are others than when a checkpoint was saved.
namespace gantry {

struct ConfigChange {
  std::string key;          ///< "SOLVER.OPTIMIZER.LEARNING_RATE"
  std::string saved, here;  ///< "0.1"; empty: absent
  SourceLocation where;     ///< of no place where it is absent here

  /// "SOLVER.OPTIMIZER.LEARNING_RATE: 0.1 in the checkpoint, 0.2 here (job.yaml:7)"
  std::string text() const;
};

/// In the order of `here`, then what is absent there. Of a component that is another one, or on one side alone, its
/// name without its settings.
std::vector<ConfigChange> config_changes(const Facts& saved, const Settings& here);

/// A training that goes on with other settings than it was saved with would end elsewhere: a ConfigError at RESUME_FROM
/// with all that changed, unless `allowed`; then, and where only the length of the run is another, it is logged.
void check_config_changes(const Config& solver, const CheckpointInfo& from, const Settings& here, bool allowed,
                          const Logger& logger);

}  // namespace gantry
