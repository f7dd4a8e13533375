#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "background_save.h"
#include "context_impl.h"
#include "gantry/base_solver.h"
#include "gantry/capability.h"
#include "gantry/checkpoint.h"
#include "gantry/hook.h"
#include "gantry/probe.h"
#include "gantry/solver.h"

namespace gantry {

inline constexpr Mode kModes[] = {Mode::train, Mode::eval, Mode::test};

std::optional<Phase> phase_named(std::string_view name);
/// With tensors of its own.
State copied(const State& state);
/// Parameters and buffers under their names, as aliases.
State model_state(const Model& model);
/// Copies the values of `from` into the tensors of `targets` of the same paths.
void copy_into(const State& targets, const State& from);

using Clock = std::chrono::steady_clock;

/// A hook with what the solver knows of it.
struct HookInstance {
  std::unique_ptr<Hook> hook;
  std::string label;  ///< NAME, or NAME#2 for the second of that name
  const ComponentInfo* info = nullptr;
  SourceLocation where;
  int64_t priority = 100;
  bool started = false;  ///< before_solve returned: after_solve is owed
  GradientHook* gradient = nullptr;
  EvalObserver* eval = nullptr;
  ExceptionObserver* exception = nullptr;
  ResumeObserver* resume = nullptr;
  CheckpointObserver* checkpoint = nullptr;
  LearningRateHook* learning_rate = nullptr;
  EvaluationWeights* evaluation_weights = nullptr;
  Clock::duration time{};  ///< spent in it, while the solver takes times
  Stateful* stateful = nullptr;
};

/// One running phase. Phases nest: an evaluation runs inside a training epoch.
struct Frame {
  Mode mode;
  int64_t iter = 0;
  int64_t max_iter = 0;
  const Batch* batch = nullptr;
  Outputs outputs;
  Fields log_values;
  FieldMeans means;        ///< of the outputs, over the phase
  bool resumed = false;    ///< its points have fired in an earlier process
  bool abandoned = false;  ///< an evaluation that a pause cut short
};

struct Solver::Impl final : StepEngine::Observer {
  Impl(BaseSolver& owner, Context& ctx)
      : base(owner),
        context(ctx),
        logger(services_of(ctx).sink, ""),
        checkpoints(ctx.work_dir() + "/checkpoints"),
        interrupts(services_of(ctx).interrupts),
        run_time(services_of(ctx).run_time) {}

  BaseSolver& base;
  Context& context;
  const Logger logger;  ///< of Gantry itself: a run's lines need no tag

  // --- parts; destroyed in reverse order: hooks before the engine, the engine before the model ---
  std::shared_ptr<Model> model;
  std::array<std::unique_ptr<Loader>, 3> data;
  std::vector<std::unique_ptr<Metric>> metrics;
  std::vector<const ComponentInfo*> metric_infos;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<LrScheduler> lr_scheduler;
  std::unique_ptr<StepEngine> engine;
  std::vector<std::unique_ptr<HookInstance>> hooks;  ///< every instance once, by priority
  std::array<std::vector<HookInstance*>, 3> hooks_of;
  std::vector<HookInstance*> learning_rate_hooks;
  bool fractional_epochs = false;
  ComponentInfo solvers_own_model;  ///< what model_info is where a derived class built the model
  const ComponentInfo* model_info = nullptr;
  const ComponentInfo* optimizer_info = nullptr;
  const ComponentInfo* scheduler_info = nullptr;
  ClosureOptimizer* closure_optimizer = nullptr;  ///< the optimizer, if it is one
  MomentumSchedule* momentum_schedule = nullptr;  ///< the schedule, if it cycles the momentum
  int64_t total_steps = 0;                        ///< optimizer steps of the whole training, once one was taken
  bool schedule_counts_epochs = false;

  // --- counters ---
  std::vector<Frame> frames;
  int64_t epoch = 0, max_epochs = 0, max_steps = 0, folds = 1;
  std::array<int64_t, 3> total_iter{};
  std::array<Scalars, 3> results;
  Phase phase = Phase::iterating;
  ExitReason exit_reason = ExitReason::none;
  std::chrono::steady_clock::duration train_time{};
  int64_t train_samples = 0;
  int64_t model_flops = 0;
  int64_t draw_every = 1;
  std::shared_ptr<Probes> probes = std::make_shared<Probes>();

  /// Where an epoch lies in the passes over the data. With NUM_FOLDS k a pass is the data k times and has k epochs, the
  /// last of which may be shorter.
  struct EpochRange {
    int64_t pass, first_batch, batches;
  };
  EpochRange epoch_range(int64_t epoch) const;
  int64_t fold_batches() const;  ///< of an epoch that is not cut short
  int64_t iterations_in_epochs(int64_t epochs) const;
  int64_t steps_in_iterations(int64_t iterations) const;  ///< from the start of training
  int64_t iterations() const { return total_iter[static_cast<int>(Mode::train)]; }
  bool more_to_train() const { return max_steps > 0 ? iterations() < max_steps : epoch < max_epochs; }
  int64_t total_max_iter() const;
  /// Training ends with the running epoch: by its limit, or because that was asked for.
  bool last_epoch() const;

  // --- evaluations within an epoch ---
  Interval eval_interval;
  /// Whether an interval of iterations or steps was completed within the window that has just closed. A function of the
  /// counters alone: a resumed run has nothing else.
  bool window_completes(const Interval& interval) const;

  // --- requests ---
  std::vector<std::string> save_whys;  ///< of the checkpoint that was asked for; empty: none was
  Stop stop = Stop::none;
  std::string stop_why;
  Stop served = Stop::none;   ///< what the loops obey
  bool finish_asked = false;  ///< stays, also when a pause comes first

  // --- checkpoints ---
  CheckpointStore checkpoints;
  std::unique_ptr<BackgroundSave> background_save;  ///< null: saves are written at once
  std::string last_checkpoint;
  Scalars best;
  /// The restored position inside an epoch, until solve_train has taken it.
  struct Entry {
    int64_t iter = 0;
    FieldMeans means;
  };
  std::optional<Entry> entry;
  /// Of the running epoch's data, as it was before the loader began: an epoch's order is drawn again on a resume.
  State data_state;

  // --- interrupts ---
  Interrupts* interrupts;
  bool signals_wanted = false, armed = false;
  RunTimeLimit run_time;
  void begin_run_time();
  bool can_be_interrupted() const { return armed || run_time.set(); }
  /// Turns a signal, or the end of the time that the run has, into a request to pause.
  void poll_interrupts();
  bool pausing() const { return served == Stop::pause; }

  const Frame* top() const { return frames.empty() ? nullptr : &frames.back(); }
  std::string phase_text(Mode mode) const;
  Interval::Unit unit_of(const Interval& interval) const;
  Mode mode() const { return frames.empty() ? Mode::train : frames.back().mode; }

  ComponentError::Origin origin(const ComponentInfo& info, const SourceLocation& where, const char* point) const;
  ComponentError::Origin origin(const HookInstance& hook, const char* point) const;
  /// Calls one hook; whatever it throws says who and where.
  template <class F>
  void call(HookInstance& hook, const char* point, F&& f) {
    if (!takes_times) return guarded(f, [&] { return origin(hook, point); });
    // What other hooks take within (BackwardHook calls those around a step) is theirs.
    const Clock::duration outer = std::exchange(time_within, Clock::duration{});
    const Clock::time_point start = Clock::now();
    guarded(f, [&] { return origin(hook, point); });
    const Clock::duration taken = Clock::now() - start;
    hook.time += taken - time_within;
    time_within = outer + taken;
  }
  bool takes_times = false;
  Clock::duration time_within{};
  /// Calls a point of the current mode's hooks, in order.
  void call_point(const char* point, void (Hook::*member)(Solver&));
  void tell_evaluated(Mode mode);

  void before_step() override;
  void update(Optimizer& optimizer, std::span<Slot> slots, const StepScope& scope) override;
  void after_step() override;
  void set_learning_rate();
  void step_with_closure(std::span<Slot> slots);

  State training_data_state() const;
  State evaluation_weights();
  void load_evaluation_weights(const State& saved);
  State best_weights(const Config& config);
  /// Of the components that stand for themselves, with whole paths: hooks, metrics, the schedule, the optimizer.
  void add_component_states(State& state);
  void load_component_states(const State& states);
  void write_checkpoint();
  /// Of a save in the background: takes note of it once it is published, waiting for that if asked to.
  void collect_save(bool wait);
  void checkpoint_saved(const CheckpointInfo& saved);

 private:
  template <class F>
  void each_stateful(const char* point, F&& f);
};

/// Keeps a phase on the stack while it runs, also when it throws.
class PhaseScope {
 public:
  PhaseScope(Solver::Impl& impl, Mode mode, int64_t max_iter) : impl_(impl) {
    impl_.frames.push_back(Frame{});
    impl_.frames.back().mode = mode;
    impl_.frames.back().max_iter = max_iter;
  }
  ~PhaseScope() { impl_.frames.pop_back(); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Solver::Impl& impl_;
};

}  // namespace gantry
