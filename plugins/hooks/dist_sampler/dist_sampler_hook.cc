#include <gantry/gantry.h>

namespace {

/// Says how often the training data are drawn anew.
class DistSamplerHook final : public gantry::Hook {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(400);
    p.single_instance();
    p.add<int64_t>("INTERVAL", 1)
        .unit("epochs")
        .at_least(1)
        .help("Epochs that have the training data in one order, and one subset where the dataset draws them.");
  }

  DistSamplerHook(const gantry::Config& config, gantry::Context&) : interval_(config.get<int64_t>("INTERVAL")) {}

  void before_solve(gantry::Solver& solver) override { solver.draw_data_every(interval_); }

 private:
  const int64_t interval_;
};

}  // namespace

GANTRY_PLUGIN("gantry-dist-sampler", GANTRY_VERSION);
GANTRY_HOOK(DistSamplerHook, "DistSamplerHook", "Draws the order and the subset of the training data at intervals.");
