#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>

#include <algorithm>
#include <cmath>

namespace {

/// base_lr * GAMMA^(number of MILESTONES reached), as PyTorch's MultiStepLR.
class MultiStepLR final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<std::vector<int64_t>>("MILESTONES")
        .at_least(1)
        .not_empty()
        .help("The rate is multiplied by GAMMA after each of these numbers of UNITs; twice where one stands twice.");
    p.add<double>("GAMMA", 0.1).above(0).help("The factor.");
  }

  MultiStepLR(const gantry::Config& config, gantry::Context&)
      : milestones_(config.get<std::vector<int64_t>>("MILESTONES")), gamma_(config.get<double>("GAMMA")) {
    std::sort(milestones_.begin(), milestones_.end());
  }

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t) const override {
    const auto at = static_cast<int64_t>(std::floor(position.at));
    const auto reached = std::upper_bound(milestones_.begin(), milestones_.end(), at) - milestones_.begin();
    return base_lr * std::pow(gamma_, static_cast<double>(reached));
  }
  bool counts_epochs_by_default() const override { return true; }

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

}  // namespace

GANTRY_PLUGIN("gantry-multi-step-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(MultiStepLR, "MultiStepLR", "Multiplies the learning rate by GAMMA at each of MILESTONES.");
