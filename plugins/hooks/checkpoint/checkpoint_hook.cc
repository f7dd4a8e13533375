#include <gantry/checkpoint.h>
#include <gantry/gantry.h>
#include <gantry/metric_goal.h>

#include <chrono>
#include <cmath>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// Asks for checkpoints, and decides which are kept and what `last` and `best` name. Writing is the solver's.
class CheckpointHook final : public gantry::Hook,
                             public gantry::EvalObserver,
                             public gantry::CheckpointObserver,
                             public gantry::ResumeObserver,
                             public gantry::Stateful {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(300);
    p.neutral();
    p.single_instance();
    p.add<gantry::Interval>("INTERVAL", {1, gantry::Interval::Unit::epochs})
        .unit("loop")
        .no_effect_on_result()
        .help("A checkpoint every so often: 2, 500 iters, 500 steps, 10 min. <= 0: none but those of the keys below.");
    p.add<std::string>("SAVE_NAME_PREFIX", "ldm_step")
        .not_empty()
        .no_effect_on_result()
        .help("Checkpoints are named <prefix>-<iterations done>.");
    p.add<bool>("SAVE_LAST", false)
        .no_effect_on_result()
        .help("Also after the last iteration, wherever INTERVAL stands.");
    p.add<bool>("SAVE_BEST", true)
        .no_effect_on_result()
        .help("Also after an evaluation that is the best so far by SAVE_BEST_BY; the link `best` names it.");
    p.add<std::string>("SAVE_BEST_BY", "")
        .no_effect_on_result()
        .help("A metric of the evaluation: +acc@1 or acc@1, the higher the better; -loss, the lower. Empty: no best.");
    p.optional<int64_t>("KEEP_LAST")
        .at_least(1)
        .no_effect_on_result()
        .help("Only so many of the newest are kept, and the best. Unset: all.");
    p.add<bool>("ASYNC", false)
        .no_effect_on_result()
        .help(
            "Checkpoints are written while training goes on, from a copy that takes as much memory as the state. At "
            "most one is being written: the next waits for it, and so do a pause and the end.");
    p.add<bool>("DISABLE_SNAPSHOT", false)
        .no_effect_on_result()
        .help("Whether there are no checkpoints at all but that of a pause: other hooks write what is kept.");
    const char* hub = "nothing is uploaded; upload what SafetensorsHook writes";
    p.foreign("PUSH_TO_HUB", {"false"}, hub);
    p.foreign("HUB_MODEL_ID", {"*"}, hub);
    p.foreign("HUB_PRIVATE", {"*"}, hub);
  }

  CheckpointHook(const gantry::Config& config, gantry::Context& context)
      : interval_(config.get<gantry::Interval>("INTERVAL")),
        prefix_(config.get<std::string>("SAVE_NAME_PREFIX")),
        save_last_(config.get<bool>("SAVE_LAST")),
        keep_last_(config.has("KEEP_LAST") ? config.get<int64_t>("KEEP_LAST") : 0),
        async_(config.get<bool>("ASYNC")),
        disabled_(config.get<bool>("DISABLE_SNAPSHOT")),
        logger_(context.logger()) {
    if (config.path().find("EVAL_HOOKS") != std::string::npos || config.path().find("TEST_HOOKS") != std::string::npos)
      throw gantry::ConfigError(config.where(), "CheckpointHook watches training: put it under HOOKS or TRAIN_HOOKS");
    if (prefix_.find('/') != std::string::npos || prefix_.front() == '.')
      throw config.error("SAVE_NAME_PREFIX", "begins a folder's name: it has no '/' and does not begin with '.'");
    if (config.get<bool>("SAVE_BEST")) goal_ = gantry::MetricGoal(config, "SAVE_BEST_BY");
  }

  void before_solve(gantry::Solver& solver) override {
    solver.checkpoints().set_prefix(prefix_);
    solver.pause_on_signals();
    if (async_) solver.save_in_background();
    last_save_ = Clock::now();
  }

  void after_iter(gantry::Solver& solver) override {
    if (solver.mode() != gantry::Mode::train || disabled_ || interval_.off()) return;
    const bool counts_time = interval_.unit == gantry::Interval::Unit::seconds;
    if (counts_time ? std::chrono::duration<double>(Clock::now() - last_save_).count() >= interval_.count
                    : solver.due(interval_))
      solver.request_checkpoint("interval");
  }

  void evaluated(gantry::Solver& solver, gantry::Mode mode, const gantry::Scalars& metrics) override {
    if (goal_.none() || mode != gantry::Mode::eval || solver.total_max_iter() == 0) return;
    const double value = goal_.value_in(metrics);
    ++evaluations_;
    if (std::isnan(value) || (best_iteration_ >= 0 && !goal_.better(value, best_))) return;
    best_ = value;
    best_iteration_ = solver.iterations();
    best_is_new_ = !disabled_;
    solver.report_best(goal_.metric(), best_);
    if (best_is_new_ && solver.phase() != gantry::Phase::evaluating_due) solver.request_checkpoint("best");
  }

  // The evaluation at an epoch's end is followed by this point: one checkpoint serves both.
  void after_epoch(gantry::Solver& solver) override {
    if (solver.mode() != gantry::Mode::train || disabled_) return;
    if (solver.due(interval_)) solver.request_checkpoint("epoch " + std::to_string(solver.epoch()));
    if (save_last_ && solver.last_epoch()) solver.request_checkpoint("last");
    if (best_is_new_) solver.request_checkpoint("best");
  }

  void checkpoint_saved(gantry::Solver& solver, const gantry::CheckpointInfo& saved) override {
    last_save_ = Clock::now();
    gantry::CheckpointStore& store = solver.checkpoints();
    store.link("last", saved.name);
    if (has_best(saved)) {
      store.link("best", saved.name);
      best_is_new_ = false;
    }
    if (keep_last_ > 0) prune(store, saved);
  }

  // A kill may have come between a checkpoint and what follows it, and a run may go on from an older one.
  void on_resume(gantry::Solver& solver) override {
    gantry::CheckpointStore& store = solver.checkpoints();
    if (best_iteration_ >= 0) solver.report_best(goal_.metric(), best_);
    // Saved between the evaluation and after_epoch, which has yet to ask for it.
    best_is_new_ = !disabled_ && best_iteration_ == solver.iterations() && solver.phase() == gantry::Phase::pass_done;
    const std::vector<gantry::CheckpointInfo> all = store.list();
    if (!all.empty()) store.link("last", all.back().name);
    for (const gantry::CheckpointInfo& info : all)
      if (info.iteration == best_iteration_) store.link("best", info.name);
    if (keep_last_ > 0 && !all.empty()) prune(store, all.back());
  }

  void after_solve(gantry::Solver&) override {
    if (evaluations_ > 0 && best_iteration_ < 0)
      logger_.warn("SAVE_BEST_BY " + goal_.metric() + " was NaN in every evaluation: there is no best checkpoint");
  }

  gantry::State state() const override {
    gantry::State state;
    state.set_text("best/by", goal_.text());
    state.set_double("best/value", best_);
    state.set_int("best/iteration", best_iteration_);
    return state;
  }
  void load_state(const gantry::State& state, int) override {
    const std::string by_then = state.text("best/by");
    if (by_then != goal_.text()) {
      if (!by_then.empty() && !goal_.none())
        logger_.warn("SAVE_BEST_BY was " + by_then + " and is " + goal_.text() + ": the best is looked for anew");
      return;
    }
    best_ = state.number("best/value");
    best_iteration_ = state.integer("best/iteration");
  }

 private:
  // One that is written in the background may have been begun in the same iteration before the evaluation.
  bool has_best(const gantry::CheckpointInfo& saved) const {
    if (saved.iteration != best_iteration_) return false;
    const std::string metric = "eval/" + goal_.metric();
    for (const auto& [name, value] : saved.metrics)
      if (name == metric) return value == best_;
    return false;
  }

  void prune(gantry::CheckpointStore& store, const gantry::CheckpointInfo& saved) {
    std::vector<gantry::CheckpointInfo> mine;
    for (gantry::CheckpointInfo& info : store.list())
      if (info.name.starts_with(prefix_ + "-")) mine.push_back(std::move(info));
    const std::string best = store.linked("best");
    const int64_t surplus = static_cast<int64_t>(mine.size()) - keep_last_;
    for (int64_t i = 0; i < surplus; ++i) {
      const std::string& name = mine[static_cast<std::size_t>(i)].name;
      if (name != best && name != saved.name) store.remove(name);
    }
  }

  const gantry::Interval interval_;
  const std::string prefix_;
  const bool save_last_;
  const int64_t keep_last_;  // 0: all
  const bool async_, disabled_;
  const gantry::Logger logger_;
  gantry::MetricGoal goal_;

  double best_ = 0;
  int64_t best_iteration_ = -1;  // training iterations done by then; -1: none yet
  bool best_is_new_ = false;     // no checkpoint has it yet
  int64_t evaluations_ = 0;
  Clock::time_point last_save_;
};

}  // namespace

GANTRY_PLUGIN("gantry-checkpoint", GANTRY_VERSION);
GANTRY_HOOK(CheckpointHook, "CheckpointHook", "Saves checkpoints: at intervals, the last, the best; keeps the newest.");
