#include <gantry/gantry.h>
#include <gantry/test_callback.h>

namespace gantry {
namespace {

/// The points of the flow in the order in which they come. Not those that belong to a process and not to the run:
/// before_solve, after_solve, on_resume.
class EventOrderCallback final : public BaseInterruptedVsContinuousCallback, public GradientHook, public EvalObserver {
 public:
  // Before every other hook, so that a point comes before what hooks do in it (BackwardHook's step).
  static void declare(Parameters& p) {
    BaseInterruptedVsContinuousCallback::declare(p);
    p.priority(-10000);
  }
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_epoch(Solver& solver) override { point(solver, "before_epoch"); }
  void before_all_iter(Solver& solver) override { point(solver, "before_all_iter"); }
  void before_iter(Solver& solver) override { point(solver, "before_iter"); }
  void after_iter(Solver& solver) override { point(solver, "after_iter"); }
  void after_all_iter(Solver& solver) override { point(solver, "after_all_iter"); }
  void after_epoch(Solver& solver) override { point(solver, "after_epoch"); }
  void before_step(Solver& solver) override { point(solver, "before_step"); }
  void after_step(Solver& solver) override { point(solver, "after_step"); }
  void evaluated(Solver& solver, Mode mode, const Scalars& metrics) override {
    Fields values{{"point", text("evaluated")}, {"of", text(mode_name(mode))}};
    for (const auto& [name, value] : metrics.entries()) values.set("metrics/" + name, value);
    record(solver, values);
  }

 private:
  static std::vector<std::string> text(const char* word) { return {word}; }
  void point(const Solver& solver, const char* name) { record(solver, Fields{{"point", text(name)}}); }
};

}  // namespace

GANTRY_HOOK(EventOrderCallback, "EventOrderCallback",
            "Test callback: the order of all that happens: points, steps, and evaluations with their metrics.");

}  // namespace gantry
