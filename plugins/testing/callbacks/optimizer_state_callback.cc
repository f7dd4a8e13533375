#include <gantry/gantry.h>
#include <gantry/optimizer.h>
#include <gantry/test_callback.h>

#include <cmath>

namespace gantry {
namespace {

/// Two entries a step: the state where it starts, and the options as it is about to use them. A resumed run has no use
/// for those of the step before.
class OptimizerStateCallback final : public BaseInterruptedVsContinuousCallback, public GradientHook {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_iter(Solver& solver) override {
    if (!starts_step(solver)) return;
    const State all = solver.state();
    State values = all.child("optimizer");
    values.merge("optimizer_whole", all.child("optimizer_whole"));
    values.set_int("step", solver.step());
    record(solver, values);
  }

  void before_step(Solver& solver) override {
    const std::vector<ParamGroup>& groups = solver.optimizer()->groups();
    Fields values;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const ParamGroup& group = groups[g];
      values.set(cat("groups/", g, "/lr"), group.lr());
      values.set(cat("groups/", g, "/base_lr"), group.base_lr());
      values.set(cat("groups/", g, "/weight_decay"), group.weight_decay());
      if (!std::isnan(group.momentum())) values.set(cat("groups/", g, "/momentum"), group.momentum());
    }
    record(solver, values);
  }
};

}  // namespace

GANTRY_HOOK(OptimizerStateCallback, "OptimizerStateCallback",
            "Test callback: the optimizer's state where each step starts, and each group's options as it uses them.");

}  // namespace gantry
