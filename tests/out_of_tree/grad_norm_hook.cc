#include <gantry/gantry.h>

class GradNormHook : public gantry::Hook, public gantry::GradientHook {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("INTERVAL", 100).unit("steps").at_least(1).help("Optimizer steps between two values.");
    p.priority(50);
  }
  GradNormHook(const gantry::Config& config, gantry::Context&) : interval_(config.get<int64_t>("INTERVAL")) {}
  void before_step(gantry::Solver& solver) override {
    if (solver.step() % interval_ == 0) solver.log_value("grad_norm", solver.gradient_norm());
  }

 private:
  int64_t interval_;
};

GANTRY_PLUGIN("acme-gradnorm", "1.0.0");
GANTRY_HOOK(GradNormHook, "acme/GradNorm", "Logs the global norm of the gradients.");
