#include <gantry/gantry.h>
#include <gantry/step_engine.h>
#include <gantry/test_callback.h>

namespace gantry {
namespace {

/// Those that took no part have none, and are left out.
class GradientCallback final : public BaseInterruptedVsContinuousCallback, public GradientHook {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_step(Solver& solver) override {
    State gradients;
    for (const Slot& slot : solver.engine()->slots())
      if (slot.gradient.defined()) gradients.set(slot.name, slot.gradient);
    record(solver, gradients);
  }
};

}  // namespace

GANTRY_HOOK(GradientCallback, "GradientCallback",
            "Test callback: the gradients of each optimizer step, whole and clipped, as it is about to use them.");

}  // namespace gantry
