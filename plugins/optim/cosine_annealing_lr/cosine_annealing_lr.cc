#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>

#include <cmath>
#include <numbers>

namespace {

/// ETA_MIN + (base_lr - ETA_MIN) * (1 + cos(pi * position / T_MAX)) / 2, the closed form of PyTorch's
/// CosineAnnealingLR.
class CosineAnnealingLR final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("T_MAX").at_least(1).help("UNITs after which the rate has come down to ETA_MIN.");
    p.add<double>("ETA_MIN", 0).at_least(0).help("The lowest rate.");
  }

  CosineAnnealingLR(const gantry::Config& config, gantry::Context&)
      : t_max_(static_cast<double>(config.get<int64_t>("T_MAX"))), eta_min_(config.get<double>("ETA_MIN")) {}

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t) const override {
    return eta_min_ + (base_lr - eta_min_) * (1 + std::cos(std::numbers::pi * position.at / t_max_)) / 2;
  }
  bool counts_epochs_by_default() const override { return true; }

 private:
  double t_max_, eta_min_;
};

}  // namespace

GANTRY_PLUGIN("gantry-cosine-annealing-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(CosineAnnealingLR, "CosineAnnealingLR", "Lowers the learning rate along half a cosine in T_MAX.");
