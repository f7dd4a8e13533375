#include <gantry/gantry.h>
#include <gantry/test_callback.h>

namespace gantry {
namespace {

class LogValueCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  // After the hooks that log.
  static void declare(Parameters& p) {
    BaseInterruptedVsContinuousCallback::declare(p);
    p.priority(1000);
  }
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void after_iter(Solver& solver) override {
    Fields values;
    for (const auto& [name, value] : solver.log_values().entries()) values.set("value/" + name, value);
    for (const auto& [name, value] : solver.collect_log_vars().entries()) values.set("var/" + name, value);
    record(solver, values);
  }
};

}  // namespace

GANTRY_HOOK(LogValueCallback, "LogValueCallback",
            "Test callback: what hooks give to logs in each iteration of every mode, and the learning rates there.");

}  // namespace gantry
