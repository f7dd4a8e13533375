#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>

#include <cmath>
#include <numbers>

namespace {

/// ETA_MIN + (base_lr - ETA_MIN) * (1 + cos(pi * since / length)) / 2, where `since` counts from the latest restart and
/// `length` is that cycle's: T_0 for the first, T_MULT times the last one's for each that follows. PyTorch's
/// CosineAnnealingWarmRestarts.
class CosineAnnealingWarmRestarts final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("T_0").at_least(1).help("UNITs of the first cycle.");
    p.add<int64_t>("T_MULT", 1).at_least(1).help("How many times as long as the one before each cycle is.");
    p.add<double>("ETA_MIN", 0).at_least(0).help("The rate that a cycle comes down to.");
  }

  CosineAnnealingWarmRestarts(const gantry::Config& config, gantry::Context&)
      : first_length_(static_cast<double>(config.get<int64_t>("T_0"))),
        growth_(static_cast<double>(config.get<int64_t>("T_MULT"))),
        eta_min_(config.get<double>("ETA_MIN")) {}

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t) const override {
    double since = position.at, length = first_length_;
    if (growth_ == 1) {
      since = std::fmod(since, length);
    } else {
      for (; since >= length; length *= growth_) since -= length;  // doubles in each turn: a few dozen at most
    }
    return eta_min_ + (base_lr - eta_min_) * (1 + std::cos(std::numbers::pi * since / length)) / 2;
  }
  bool counts_epochs_by_default() const override { return true; }

 private:
  double first_length_, growth_, eta_min_;
};

}  // namespace

GANTRY_PLUGIN("gantry-cosine-annealing-warm-restarts", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(CosineAnnealingWarmRestarts, "CosineAnnealingWarmRestarts",
                    "Lowers the learning rate along half a cosine, again and again.");
