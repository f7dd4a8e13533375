#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>

namespace {

/// base_lr * min(1, (position + 1) / WARMUP_STEPS).
class WarmupToConstantLR final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("WARMUP_STEPS", 10000).at_least(0).help("UNITs over which the rate rises; 0: none.");
  }

  WarmupToConstantLR(const gantry::Config& config, gantry::Context&)
      : warmup_(static_cast<double>(config.get<int64_t>("WARMUP_STEPS"))) {}

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t) const override {
    if (position.at + 1 >= warmup_) return base_lr;  // also where there is no warm-up to divide by
    return base_lr * (position.at + 1) / warmup_;
  }

 private:
  double warmup_;
};

}  // namespace

GANTRY_PLUGIN("gantry-warmup-to-constant-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(WarmupToConstantLR, "WarmupToConstantLR", "Raises the learning rate in a line, then keeps it.");
