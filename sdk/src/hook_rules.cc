#include "hook_rules.h"

#include <map>

#include "gantry/text.h"

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
  if (!solver.has("OPTIMIZER") || !solver.has("TRAIN_DATA")) return;
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

}  // namespace

void check_hook_rules(const Config& solver, const ComponentInfo& info, const std::vector<HookUse>& hooks,
                      std::vector<ConfigError>& problems) {
  check_single_instances(hooks, problems);
  const bool can_train = info.parameters.find("OPTIMIZER") && info.parameters.find("TRAIN_DATA");
  const bool has_hooks = info.parameters.find("TRAIN_HOOKS") || info.parameters.find("HOOKS");
  if (can_train && has_hooks) check_backward(solver, hooks, problems);
}

}  // namespace gantry
