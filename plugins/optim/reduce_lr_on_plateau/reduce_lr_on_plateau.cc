#include <gantry/gantry.h>
#include <gantry/lr_scheduler.h>
#include <gantry/optimizer.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

/// PyTorch's ReduceLROnPlateau, fed by the evaluations. How often the rate was lowered is state; what it is then, a
/// function of that and of the group's base rate.
class ReduceLROnPlateau final : public gantry::LrScheduler, public gantry::EvalObserver, public gantry::Stateful {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<std::string>("METRIC", "loss").not_empty().help("The figure of the evaluations to look at.");
    p.add<std::string>("MODE", "min").choices({"min", "max"}).help("Whether lower or higher values are better.");
    p.add<double>("FACTOR", 0.1).above(0).below(1).help("What the rate is multiplied by.");
    p.add<int64_t>("PATIENCE", 10).at_least(0).unit("evaluations").help("How many may pass without a better value.");
    p.add<double>("THRESHOLD", 1e-4).at_least(0).help("By how much a value has to be better than the best so far.");
    p.add<std::string>("THRESHOLD_MODE", "rel")
        .choices({"rel", "abs"})
        .help("Whether THRESHOLD is a share of the best value, or an amount.");
    p.add<int64_t>("COOLDOWN", 0)
        .at_least(0)
        .unit("evaluations")
        .help("After the rate was lowered, how many do not count against PATIENCE.");
    p.add<std::vector<double>>("MIN_LR", {0})
        .at_least(0)
        .not_empty()
        .help("The rate is never lowered below it: one number, or one for each group.");
    p.add<double>("EPS", 1e-8).at_least(0).help("A rate that would change by no more than this stays.");
  }

  ReduceLROnPlateau(const gantry::Config& config, gantry::Context&)
      : metric_(config.get<std::string>("METRIC")),
        max_(config.get<std::string>("MODE") == "max"),
        relative_(config.get<std::string>("THRESHOLD_MODE") == "rel"),
        factor_(config.get<double>("FACTOR")),
        threshold_(config.get<double>("THRESHOLD")),
        eps_(config.get<double>("EPS")),
        min_lr_(config.get<std::vector<double>>("MIN_LR")),
        patience_(config.get<int64_t>("PATIENCE")),
        cooldown_(config.get<int64_t>("COOLDOWN")),
        best_(max_ ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {}

  double lr(const gantry::SchedulePosition&, double base_lr, int64_t group) const override {
    const double lowest = lowest_of(group);
    double rate = base_lr;
    for (int64_t i = 0; i < reductions_; ++i) {
      const double lower = std::max(rate * factor_, lowest);
      if (rate - lower <= eps_) break;  // for good: the next would be the same
      rate = lower;
    }
    return rate;
  }

  void evaluated(gantry::Solver& solver, gantry::Mode mode, const gantry::Scalars& metrics) override {
    if (mode != gantry::Mode::eval) return;
    const double value = value_of(metrics);
    if (std::isnan(value)) {
      solver.logger().warn(gantry::cat("ReduceLROnPlateau: ", metric_, " is nan; this evaluation does not count"));
      return;
    }
    if (is_better(value)) {
      best_ = value;
      without_better_ = 0;
    } else {
      ++without_better_;
    }
    if (cooling_ > 0) {
      --cooling_;
      without_better_ = 0;
    }
    if (without_better_ > patience_) {
      reduce(solver);
      cooling_ = cooldown_;
      without_better_ = 0;
    }
  }

  gantry::State state() const override {
    gantry::State state;
    state.set_double("best", best_);
    state.set_int("num_bad_epochs", without_better_);
    state.set_int("cooldown_counter", cooling_);
    state.set_int("reductions", reductions_);
    return state;
  }
  void load_state(const gantry::State& state, int) override {
    best_ = state.number("best");
    without_better_ = state.integer("num_bad_epochs");
    cooling_ = state.integer("cooldown_counter");
    reductions_ = state.integer("reductions");
  }

 private:
  double lowest_of(int64_t group) const {
    if (min_lr_.size() == 1) return min_lr_.front();
    if (group >= static_cast<int64_t>(min_lr_.size()))
      throw gantry::Error(gantry::cat("MIN_LR has ", min_lr_.size(), " values, but the optimizer has a group ", group,
                                      ", counted from 0: give one value, or one for each group"));
    return min_lr_[static_cast<std::size_t>(group)];
  }

  double value_of(const gantry::Scalars& metrics) const {
    if (const double* value = metrics.find(metric_)) return *value;
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics.entries()) names.push_back(name);
    const std::vector<std::string> near = gantry::near_matches(metric_, names);
    throw gantry::Error(gantry::cat("METRIC is ", metric_, ", but the evaluation has none of this name",
                                    near.empty() ? "" : gantry::cat("; did you mean ", gantry::join(near, " or "), "?"),
                                    " It has: ", names.empty() ? "nothing" : gantry::join(names, ", ")));
  }

  bool is_better(double value) const {
    if (max_) return value > (relative_ ? best_ * (1 + threshold_) : best_ + threshold_);
    return value < (relative_ ? best_ * (1 - threshold_) : best_ - threshold_);
  }

  void reduce(const gantry::Solver& solver) {
    const double base = solver.optimizer()->groups().front().base_lr();
    const double before = lr({}, base, 0);
    ++reductions_;
    const double after = lr({}, base, 0);
    const std::string change = after == before
                                   ? gantry::cat(gantry::short_number(after), " is as low as it goes")
                                   : gantry::cat(gantry::short_number(before), " -> ", gantry::short_number(after));
    solver.logger().info(gantry::cat("ReduceLROnPlateau: ", metric_, " was not better than ",
                                     gantry::short_number(best_), " in ", without_better_,
                                     " evaluations: learning rate ", change));
  }

  std::string metric_;
  bool max_, relative_;
  double factor_, threshold_, eps_;
  std::vector<double> min_lr_;
  int64_t patience_, cooldown_;

  double best_;
  int64_t without_better_ = 0, cooling_ = 0, reductions_ = 0;
};

}  // namespace

GANTRY_PLUGIN("gantry-reduce-lr-on-plateau", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(ReduceLROnPlateau, "ReduceLROnPlateau",
                    "Lowers the learning rate when the evaluations stop getting better.");
