#include <gantry/gantry.h>
#include <gantry/metric_goal.h>

#include <cmath>

namespace {

/// Asks for training's end once evaluations do not get better any more.
class EarlyStopHook final : public gantry::Hook, public gantry::EvalObserver, public gantry::Stateful {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<std::string>("METRIC").not_empty().help(
        "Of the evaluations: +acc@1 or acc@1, the higher the better; -loss, the lower.");
    p.add<int64_t>("PATIENCE", 5)
        .unit("evaluations")
        .at_least(1)
        .help("Training ends after so many evaluations, one after the other, that are no better than the best before.");
    p.add<double>("MIN_DELTA", 0).at_least(0).help("What is better by no more than this is not better.");
    p.add<int64_t>("START_EPOCH", 1).at_least(0).help("Evaluations before this epoch do not count.");
  }

  EarlyStopHook(const gantry::Config& config, gantry::Context& context)
      : goal_(config, "METRIC"),
        patience_(config.get<int64_t>("PATIENCE")),
        min_delta_(config.get<double>("MIN_DELTA")),
        start_epoch_(config.get<int64_t>("START_EPOCH")),
        logger_(context.logger()) {}

  void evaluated(gantry::Solver& solver, gantry::Mode mode, const gantry::Scalars& metrics) override {
    if (mode != gantry::Mode::eval || solver.total_max_iter() == 0) return;
    const double value = goal_.value_in(metrics);
    seen_ = true;
    if (solver.epoch() < start_epoch_) return;
    if (std::isnan(value)) logger_.warn(goal_.metric() + " is NaN: that counts as no improvement");
    const bool first = best_epoch_ < 0 && !std::isnan(value);
    if (first || goal_.better(value, best_, min_delta_)) {
      best_ = value;
      best_epoch_ = solver.epoch();
      waited_ = 0;
      return;
    }
    if (++waited_ < patience_) return;
    std::string why = goal_.metric() + " has not improved in " + std::to_string(waited_) + " evaluations";
    if (best_epoch_ >= 0)
      why += "; the best was " + gantry::short_number(best_) + " in epoch " + std::to_string(best_epoch_);
    solver.request_stop(gantry::Stop::finish, why);
  }

  void after_solve(gantry::Solver& solver) override {
    if (!seen_ && solver.exit_reason() == gantry::ExitReason::done && solver.total_max_iter() > 0)
      logger_.warn("there was no evaluation to stop by: EarlyStopHook needs EVAL_DATA and an EVAL_INTERVAL above 0");
  }

  gantry::State state() const override {
    gantry::State state;
    state.set_text("metric", goal_.text());
    state.set_double("best", best_);
    state.set_int("best_epoch", best_epoch_);
    state.set_int("waited", waited_);
    return state;
  }
  void load_state(const gantry::State& state, int) override {
    if (const std::string then = state.text("metric"); then != goal_.text()) {
      logger_.warn("METRIC was " + then + " and is " + goal_.text() + ": the best is looked for anew");
      return;
    }
    best_ = state.number("best");
    best_epoch_ = state.integer("best_epoch");
    waited_ = state.integer("waited");
    seen_ = true;
  }

 private:
  const gantry::MetricGoal goal_;
  const int64_t patience_;
  const double min_delta_;
  const int64_t start_epoch_;
  const gantry::Logger logger_;
  double best_ = std::nan("");
  int64_t best_epoch_ = -1;  // none yet
  int64_t waited_ = 0;       // evaluations since the best
  bool seen_ = false;
};

}  // namespace

GANTRY_PLUGIN("gantry-early-stop", GANTRY_VERSION);
GANTRY_HOOK(EarlyStopHook, "EarlyStopHook", "Ends training when a metric of the evaluations stops improving.");
