#include <gantry/gantry.h>

namespace gantry {
namespace {

class StopAfterValidEpochEndCallback final : public Hook {
 public:
  static void declare(Parameters& p) {
    p.neutral();
    p.priority(1000);
  }
  StopAfterValidEpochEndCallback(const Config&, Context&) {}

  // A run that only evaluates ends with its evaluation as it is.
  void after_epoch(Solver& solver) override {
    if (solver.mode() == Mode::eval && solver.total_max_iter() > 0)
      solver.request_stop(Stop::pause, "StopAfterValidEpochEndCallback");
  }
};

}  // namespace

GANTRY_HOOK(StopAfterValidEpochEndCallback, "StopAfterValidEpochEndCallback",
            "Test callback: pauses training after each evaluation.");

}  // namespace gantry
