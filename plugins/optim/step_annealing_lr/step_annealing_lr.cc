#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>
#include <gantry/text.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace {

/// Warm-up: base_lr * (position + 1) / WARMUP_STEPS. Then base_lr times a factor that falls from 1 at WARMUP_STEPS to
/// 0 at TOTAL_STEPS. MIN_LR is a floor throughout.
class StepAnnealingLR final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("WARMUP_STEPS", 0).at_least(0).help("UNITs over which the rate rises; 0: none.");
    p.optional<int64_t>("TOTAL_STEPS")
        .at_least(1)
        .help("UNITs after which the rate has come down, those of the warm-up included. Default: the whole run's.");
    p.add<std::string>("DECAY_MODE", "cosine")
        .choices({"cosine", "linear", "none"})
        .help("How the rate falls after the warm-up; none: it does not.");
    p.add<double>("MIN_LR", 0).at_least(0).help("The rate is never lower.");
  }

  StepAnnealingLR(const gantry::Config& config, gantry::Context&)
      : warmup_(static_cast<double>(config.get<int64_t>("WARMUP_STEPS"))),
        mode_(config.get<std::string>("DECAY_MODE")),
        min_lr_(config.get<double>("MIN_LR")),
        counts_epochs_(config.has("UNIT") && config.get<std::string>("UNIT") == "epoch") {
    if (!config.has("TOTAL_STEPS")) return;
    total_ = static_cast<double>(config.get<int64_t>("TOTAL_STEPS"));
    if (total_ <= warmup_ && mode_ != "none") {
      throw config.error("TOTAL_STEPS",
                         gantry::cat("TOTAL_STEPS is ", total_, ", WARMUP_STEPS ", warmup_,
                                     ": nothing is left for the rate to fall in; make TOTAL_STEPS larger"));
    }
  }

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t) const override {
    return std::max(min_lr_, base_lr * factor(position));
  }

 private:
  double factor(const gantry::SchedulePosition& position) const {
    if (position.at < warmup_) return std::min(1.0, (position.at + 1) / warmup_);
    if (mode_ == "none") return 1;
    const double run = counts_epochs_ ? position.total_epochs : static_cast<double>(position.total_steps);
    const double total = total_ > 0 ? total_ : run;
    const double progress = total > warmup_ ? std::min(1.0, (position.at - warmup_) / (total - warmup_)) : 1;
    return mode_ == "cosine" ? (1 + std::cos(std::numbers::pi * progress)) / 2 : 1 - progress;
  }

  double warmup_, total_ = 0;  // total_ 0: the run's
  std::string mode_;
  double min_lr_;
  bool counts_epochs_;
};

}  // namespace

GANTRY_PLUGIN("gantry-step-annealing-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(StepAnnealingLR, "StepAnnealingLR", "Warm-up, then a cosine or a line down to the end of the run.");
