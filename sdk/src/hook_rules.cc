#include "hook_rules.h"

#include <map>

#include "gantry/text.h"
#include "run_mode.h"

namespace gantry {
namespace {

void check_single_instances(const std::vector<HookUse>& hooks, std::vector<ConfigError>& problems) {
  std::map<std::string, const HookUse*> first;
  for (const HookUse& hook : hooks) {
    if (!hook.info || !hook.info->parameters.is_single_instance()) continue;
    const auto [seen, inserted] = first.emplace(hook.info->name, &hook);
    if (inserted) continue;
    problems.emplace_back(hook.where, cat("hook ", hook.info->name, " can be there only once; the other one is in ",
                                          seen->second->list, " at ", seen->second->where.str(), ": keep one of them"));
  }
}

void check_backward(const Config& solver, const std::vector<HookUse>& hooks, std::vector<ConfigError>& problems) {
  if (!solver.has("OPTIMIZER") || !trains(solver)) return;
  const HookUse* trigger = nullptr;
  bool all_known = true;
  for (const HookUse& hook : hooks) {
    if (hook.list != "TRAIN_HOOKS" && hook.list != "HOOKS") continue;
    if (!hook.info) {
      all_known = false;
    } else if (hook.info->parameters.does_trigger_backward()) {
      if (trigger) {
        problems.emplace_back(hook.where, cat("hook ", hook.info->name, " runs the backward pass, and so does ",
                                              trigger->info->name, " at ", trigger->where.str(), ": keep one of them"));
      } else {
        trigger = &hook;
      }
    }
  }
  // A misspelt hook may be the one.
  if (trigger || !all_known) return;
  problems.emplace_back(solver.where("TRAIN_HOOKS"),
                        "SOLVER has an OPTIMIZER but no hook that runs the backward pass, so nothing would be "
                        "trained; add to TRAIN_HOOKS:\n    - {NAME: BackwardHook}");
}

/// ACCU_STEP and the hook's ACCUMULATE_STEP are two names of one thing.
void check_accumulation(const Config& solver, const std::vector<HookUse>& hooks, std::vector<ConfigError>& problems) {
  if (!solver.has("ACCU_STEP")) return;
  for (const HookUse& use : hooks) {
    if (use.info == nullptr || !use.info->parameters.does_trigger_backward() || !use.hook.has("ACCUMULATE_STEP"))
      continue;
    const auto one = solver.find("ACCU_STEP")->text(), other = use.hook.find("ACCUMULATE_STEP")->text();
    if (one != other)
      problems.push_back(solver.error(
          "ACCU_STEP", cat("ACCU_STEP is ", one, ", and ACCUMULATE_STEP of ", use.info->name, " is ", other, " (",
                           use.hook.where("ACCUMULATE_STEP").str(), "): they mean the same, so keep one of them")));
  }
}

}  // namespace

void check_hook_rules(const Config& solver, const ComponentInfo& info, const std::vector<HookUse>& hooks,
                      std::vector<ConfigError>& problems) {
  check_single_instances(hooks, problems);
  const bool can_train = info.parameters.find("OPTIMIZER") && info.parameters.find("TRAIN_DATA");
  check_accumulation(solver, hooks, problems);
  const bool has_hooks = info.parameters.find("TRAIN_HOOKS") || info.parameters.find("HOOKS");
  if (can_train && has_hooks) check_backward(solver, hooks, problems);
}

}  // namespace gantry
