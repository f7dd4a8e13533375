#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>

#include <cmath>

namespace {

/// base_lr * GAMMA^position, the closed form of PyTorch's ExponentialLR.
class ExponentialLR final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("GAMMA").above(0).help("The rate is multiplied by it after every UNIT.");
  }

  ExponentialLR(const gantry::Config& config, gantry::Context&) : gamma_(config.get<double>("GAMMA")) {}

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t) const override {
    return base_lr * std::pow(gamma_, position.at);
  }
  bool counts_epochs_by_default() const override { return true; }

 private:
  double gamma_;
};

}  // namespace

GANTRY_PLUGIN("gantry-exponential-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(ExponentialLR, "ExponentialLR", "Multiplies the learning rate by GAMMA every epoch or step.");
