#include <gantry/gantry.h>
#include <gantry/test_callback.h>

namespace gantry {
namespace {

/// What a process has once it took a checkpoint, and before anything goes on: to be compared with that checkpoint. The
/// latest resume counts.
class RestoredStateCallback final : public BaseInterruptedVsContinuousCallback, public ResumeObserver {
 public:
  // Before hooks that rebuild something.
  static void declare(Parameters& p) {
    BaseInterruptedVsContinuousCallback::declare(p);
    p.priority(-1000);
  }
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void on_resume(Solver& solver) override { record_alone(solver, solver.state()); }
};

}  // namespace

GANTRY_HOOK(RestoredStateCallback, "RestoredStateCallback",
            "Test callback: the whole state of a resumed run before it goes on.");

}  // namespace gantry
