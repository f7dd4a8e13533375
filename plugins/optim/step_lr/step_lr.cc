#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>

#include <cmath>

namespace {

/// base_lr * GAMMA^floor(position / STEP_SIZE), as PyTorch's StepLR.
class StepLR final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("STEP_SIZE").at_least(1).help("The rate is multiplied by GAMMA after every so many UNITs.");
    p.add<double>("GAMMA", 0.1).above(0).help("The factor.");
  }

  StepLR(const gantry::Config& config, gantry::Context&)
      : step_size_(static_cast<double>(config.get<int64_t>("STEP_SIZE"))), gamma_(config.get<double>("GAMMA")) {}

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t) const override {
    return base_lr * std::pow(gamma_, std::floor(position.at / step_size_));
  }
  bool counts_epochs_by_default() const override { return true; }

 private:
  double step_size_, gamma_;
};

}  // namespace

GANTRY_PLUGIN("gantry-step-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(StepLR, "StepLR", "Multiplies the learning rate by GAMMA every STEP_SIZE epochs or steps.");
