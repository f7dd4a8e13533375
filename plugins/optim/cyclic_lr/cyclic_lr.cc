#include <gantry/error.h>
#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>
#include <gantry/text.h>

#include <cmath>
#include <limits>
#include <utility>

namespace {

/// A number for all groups, or one for each.
class PerGroup {
 public:
  PerGroup(const gantry::Config& config, std::string key)
      : key_(std::move(key)), values_(config.get<std::vector<double>>(key_)) {}

  double operator[](int64_t group) const {
    if (values_.size() == 1) return values_.front();
    if (group >= static_cast<int64_t>(values_.size()))
      throw gantry::Error(gantry::cat(key_, " has ", values_.size(), " values, but the optimizer has a group ", group,
                                      ", counted from 0: give one value, or one for each group"));
    return values_[static_cast<std::size_t>(group)];
  }

 private:
  std::string key_;
  std::vector<double> values_;
};

/// Up from BASE_LR to MAX_LR in STEP_SIZE_UP, down again in STEP_SIZE_DOWN, and so on; the momentum the other way
/// round. PyTorch's CyclicLR.
class CyclicLR final : public gantry::LrScheduler, public gantry::MomentumSchedule {
 public:
  static void declare(gantry::Parameters& p) {
    p.optional<std::vector<double>>("BASE_LR").at_least(0).not_empty().help(
        "The rate at the ends of a cycle: one number, or one for each group. Default: the group's own.");
    p.add<std::vector<double>>("MAX_LR").at_least(0).not_empty().help(
        "The rate at the peak of a cycle that is not scaled: one number, or one for each group.");
    p.add<int64_t>("STEP_SIZE_UP", 2000).at_least(1).help("UNITs of the way up.");
    p.optional<int64_t>("STEP_SIZE_DOWN").at_least(1).help("UNITs of the way down. Default: STEP_SIZE_UP.");
    p.add<std::string>("MODE", "triangular")
        .choices({"triangular", "triangular2", "exp_range"})
        .help("The height of the cycles: all the same; half the last one's each; times GAMMA for every UNIT so far.");
    p.add<double>("GAMMA", 1).above(0).help("Of MODE exp_range.");
    p.add<bool>("CYCLE_MOMENTUM", true)
        .help("Cycle the momentum as well (the first of BETAS where the optimizer has these), lowest at the peak.");
    p.add<std::vector<double>>("BASE_MOMENTUM", {0.8})
        .at_least(0)
        .below(1)
        .not_empty()
        .help("The momentum at the peak of a cycle that is not scaled: one number, or one for each group.");
    p.add<std::vector<double>>("MAX_MOMENTUM", {0.9})
        .at_least(0)
        .below(1)
        .not_empty()
        .help("The momentum at the ends of a cycle: one number, or one for each group.");
    p.foreign("SCALE_MODE", {"cycle", "iterations"}, "MODE says what its scaling counts");
    p.foreign("SCALE_FN", {}, "there is no Python code here; use MODE and GAMMA, or LambdaLR");
  }

  CyclicLR(const gantry::Config& config, gantry::Context&)
      : own_base_(!config.has("BASE_LR")),
        base_lr_(config, own_base_ ? "MAX_LR" : "BASE_LR"),
        max_lr_(config, "MAX_LR"),
        base_momentum_(config, "BASE_MOMENTUM"),
        max_momentum_(config, "MAX_MOMENTUM"),
        up_(static_cast<double>(config.get<int64_t>("STEP_SIZE_UP"))),
        total_(up_ + (config.has("STEP_SIZE_DOWN") ? static_cast<double>(config.get<int64_t>("STEP_SIZE_DOWN")) : up_)),
        mode_(config.get<std::string>("MODE")),
        gamma_(config.get<double>("GAMMA")),
        cycles_momentum_(config.get<bool>("CYCLE_MOMENTUM")) {}

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t group) const override {
    const double low = own_base_ ? base_lr : base_lr_[group];
    return low + (max_lr_[group] - low) * height(position.at);
  }

  double momentum(const gantry::SchedulePosition& position, int64_t group) const override {
    if (!cycles_momentum_) return std::numeric_limits<double>::quiet_NaN();
    return max_momentum_[group] - (max_momentum_[group] - base_momentum_[group]) * height(position.at);
  }

 private:
  /// 0 at the ends of a cycle, 1 at its peak, scaled as MODE says.
  double height(double at) const {
    const double cycle = std::floor(1 + at / total_);  // the first is 1
    const double within = 1 + at / total_ - cycle;
    const double peak = up_ / total_;
    const double height = within <= peak ? within / peak : (within - 1) / (peak - 1);
    if (mode_ == "triangular2") return height / std::pow(2.0, cycle - 1);
    if (mode_ == "exp_range") return height * std::pow(gamma_, at);
    return height;
  }

  bool own_base_;
  PerGroup base_lr_, max_lr_, base_momentum_, max_momentum_;  // base_lr_ means nothing where own_base_ holds
  double up_, total_;
  std::string mode_;
  double gamma_;
  bool cycles_momentum_;
};

}  // namespace

GANTRY_PLUGIN("gantry-cyclic-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(CyclicLR, "CyclicLR", "Raises and lowers the learning rate in cycles, the momentum against it.");
