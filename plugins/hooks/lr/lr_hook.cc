#include <gantry/gantry.h>
#include <gantry/optimizer.h>

#include <cmath>

namespace {

/// A warm-up on top of the schedule, and schedules by the fraction of an epoch.
class LrHook final : public gantry::Hook, public gantry::LearningRateHook {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(200);
    p.add<std::string>("WARMUP_FUNC", "linear")
        .choices({"linear", "none"})
        .help("How the rate rises during the warm-up; none: there is no warm-up.");
    p.add<int64_t>("WARMUP_EPOCHS", 1).unit("epochs").at_least(0).help("Length of the warm-up; 0: none.");
    p.add<double>("WARMUP_START_LR", 0.0001).at_least(0).help("The rate that the warm-up begins with.");
    p.add<bool>("SET_BY_EPOCH", true)
        .help("The rate changes once per epoch; false: at every optimizer step, also for schedules that count epochs.");
  }

  LrHook(const gantry::Config& config, gantry::Context&)
      : start_lr_(config.get<double>("WARMUP_START_LR")), by_epoch_(config.get<bool>("SET_BY_EPOCH")) {
    if (config.get<std::string>("WARMUP_FUNC") == "linear")
      warmup_epochs_ = static_cast<double>(config.get<int64_t>("WARMUP_EPOCHS"));
  }

  void before_solve(gantry::Solver& solver) override {
    if (warmup_epochs_ == 0 || solver.optimizer() == nullptr) return;
    for (const gantry::ParamGroup& group : solver.optimizer()->groups()) {
      if (start_lr_ <= group.base_lr()) continue;
      solver.logger().warn("LrHook: the warm-up lowers the learning rate of group '" + group.name() +
                           "': WARMUP_START_LR is " + gantry::number_text(start_lr_) + ", the group's own rate " +
                           gantry::number_text(group.base_lr()));
    }
  }

  double learning_rate(const gantry::SchedulePosition& position, double scheduled,
                       const gantry::ParamGroup&) const override {
    const double done = by_epoch_ ? std::floor(position.epoch) : position.epoch;
    if (done >= warmup_epochs_) return scheduled;  // also where there is no warm-up to divide by
    return start_lr_ + (scheduled - start_lr_) * done / warmup_epochs_;
  }

  bool fractional_epochs() const override { return !by_epoch_; }

 private:
  double start_lr_, warmup_epochs_ = 0;
  bool by_epoch_;
};

}  // namespace

GANTRY_PLUGIN("gantry-lr", GANTRY_VERSION);
GANTRY_HOOK(LrHook, "LrHook", "Warms the learning rate up; changes it by epoch or at every step.");
