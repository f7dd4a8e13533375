#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>

#include <algorithm>
#include <cmath>

namespace {

class LinoPolyLR final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("END_EPOCH")
        .at_least(1)
        .help(
            "UNITs after which the rate has come down to 0. At t it is base * (1 - min(t, END_EPOCH) / "
            "END_EPOCH)^POWER.");
    p.add<double>("POWER", 1).above(0).help("1: along a line; more: faster at first.");
  }

  LinoPolyLR(const gantry::Config& config, gantry::Context&)
      : end_(static_cast<double>(config.get<int64_t>("END_EPOCH"))), power_(config.get<double>("POWER")) {}

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t) const override {
    return base_lr * std::pow(1 - std::min(position.at, end_) / end_, power_);
  }
  bool counts_epochs_by_default() const override { return true; }

 private:
  double end_, power_;
};

}  // namespace

GANTRY_PLUGIN("gantry-lino-poly-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(LinoPolyLR, "LinoPolyLR", "Lowers the learning rate along a power of the time that is left.");
