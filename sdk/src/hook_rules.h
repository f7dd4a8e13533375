#pragma once

#include <string>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/config.h"

namespace gantry {

/// One item of a solver's hook lists.
struct HookUse {
  const ComponentInfo* info;  ///< null when its name is unknown
  std::string list;           ///< "TRAIN_HOOKS"
  SourceLocation where;
  Config hook;  ///< resolved
};

/// What must hold between a solver's hooks: nothing twice that says so of itself, and exactly one that runs
/// the backward pass where something is to be trained.
void check_hook_rules(const Config& solver, const ComponentInfo& info, const std::vector<HookUse>& hooks,
                      std::vector<ConfigError>& problems);

}  // namespace gantry
