#include <gantry/gantry.h>
#include <gantry/optimizer.h>
#include <gantry/test_callback.h>

// Where training stands as it takes a step.

namespace gantry {
namespace {

/// The rates that the step is about to use.
class LearningRateCallback final : public BaseInterruptedVsContinuousCallback, public GradientHook {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_step(Solver& solver) override {
    const std::vector<ParamGroup>& groups = solver.optimizer()->groups();
    Fields rates;
    for (std::size_t g = 0; g < groups.size(); ++g)
      rates.set(groups.size() == 1 ? "lr" : cat("pg", g, "_lr"), groups[g].lr());
    record(solver, rates);
  }
};

class GlobalStepStateCallback final : public BaseInterruptedVsContinuousCallback, public GradientHook {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_step(Solver& solver) override { record(solver, Fields{{"step", solver.step()}}); }
};

/// What the loader served, and what the counters make of it: they must agree, too.
class ConsumedSamplesCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_iter(Solver& solver) override {
    if (!starts_step(solver)) return;
    record(solver, Fields{{"consumed_samples", solver.batch().first_position},
                          {"computed", solver.consumed_samples(Mode::train)}});
  }
};

}  // namespace

GANTRY_HOOK(LearningRateCallback, "LearningRateCallback",
            "Test callback: the learning rate of each group, as each optimizer step is about to use it.");
GANTRY_HOOK(GlobalStepStateCallback, "GlobalStepStateCallback",
            "Test callback: how many optimizer steps were taken, before each.");
GANTRY_HOOK(ConsumedSamplesCallback, "ConsumedSamplesCallback",
            "Test callback: training samples consumed where each step starts, as served and as counted.");

}  // namespace gantry
