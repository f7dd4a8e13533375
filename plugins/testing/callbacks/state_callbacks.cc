#include <gantry/gantry.h>
#include <gantry/test_callback.h>

// Parts of the state that checkpoints keep, where each optimizer step starts.

namespace gantry {
namespace {

constexpr char kModel[] = "model";
constexpr char kScheduler[] = "scheduler";
constexpr char kHooks[] = "hooks";

/// An empty part is an entry without values: it must stay empty.
template <const char* part>
class StateCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_iter(Solver& solver) override {
    if (starts_step(solver)) record(solver, solver.state().child(part));
  }
};
using WeightsCallback = StateCallback<kModel>;
using LrSchedulerStateCallback = StateCallback<kScheduler>;
using HookStateCallback = StateCallback<kHooks>;

class RngStateCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_iter(Solver& solver) override {
    if (solver.mode() != Mode::train || starts_step(solver)) record(solver, solver.state().child("rng"));
  }
};

}  // namespace

GANTRY_HOOK(WeightsCallback, "WeightsCallback",
            "Test callback: the model's parameters and buffers where each optimizer step starts.");
GANTRY_HOOK(LrSchedulerStateCallback, "LrSchedulerStateCallback",
            "Test callback: what the learning-rate schedule keeps, where each optimizer step starts.");
GANTRY_HOOK(HookStateCallback, "HookStateCallback",
            "Test callback: what all hooks keep, where each optimizer step starts.");
GANTRY_HOOK(RngStateCallback, "RngStateCallback",
            "Test callback: the random generators where each optimizer step and each evaluated batch starts.");

}  // namespace gantry
