#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/batch.h"
#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/fields.h"
#include "gantry/log.h"

namespace torch::nn {
class Module;
}

namespace gantry {

class BaseSolver;
class CheckpointStore;
class LrScheduler;
class Optimizer;
class Probes;
class State;
class StepEngine;
class World;

/// How a run ends when it is asked to.
enum class Stop {
  none,
  finish,  ///< the run is complete: tests run, exit code 0
  pause    ///< saved at the next save point, exit code 75, goes on when resumed
};

/// Where between its points a run stands, by what comes next: what a checkpoint records and a resume enters at.
enum class Phase {
  iterating,       ///< the next batch of the running epoch, or after_all_iter where all are done
  interim_due,     ///< an evaluation in the middle of an epoch, from its first batch
  evaluating_due,  ///< the epoch's evaluation, from its first batch
  pass_done,       ///< the training epoch's after_epoch
  epoch_done,      ///< the next epoch, or the tests
  testing_due,     ///< the tests, from their first batch
  finished         ///< nothing
};
GANTRY_API const char* phase_name(Phase phase);  ///< "iterating", ...

/// Why after_solve runs.
enum class ExitReason { none, done, finish_requested, paused, failed };

/// What hooks receive: the state of the run, and the few things that a hook may ask of it. Everything is as
/// of now and belongs to the solver; references are valid during the call. Main thread. No virtual functions:
/// this class may grow without any plugin noticing.
///
/// Words: an *iteration* is one batch; a *window* is ACCUMULATE_STEP iterations; a *step* is one update by
/// the optimizer, at a window's end.
class GANTRY_API Solver final {
 public:
  // --- where we are ---
  Mode mode() const;
  int64_t epoch() const;           ///< 1-based while one runs, 0 before
  int64_t max_epochs() const;      ///< 0: not limited by epochs
  int64_t iter() const;            ///< 0-based, within this phase
  int64_t total_iter() const;      ///< 0-based, over all phases of this mode; advanced after the hooks
  int64_t iterations() const;      ///< training iterations done, whatever phase runs
  int64_t epoch_max_iter() const;  ///< iterations of this phase
  int64_t max_steps() const;       ///< limit on iterations, 0: none; then there is no limit on epochs
  int64_t total_max_iter() const;  ///< iterations of the whole training
  bool last_epoch() const;  ///< training ends with the running epoch, by its limit or because a hook asked for it
  /// Whether an iteration that has just run (in after_iter), or an epoch that ends (in after_epoch), completes one more
  /// `interval`. Of times: never.
  bool due(const Interval& interval) const;
  int64_t step() const;        ///< optimizer steps taken
  /// Samples of a mode's data that are done with: where the next iteration's begin.
  int64_t consumed_samples(Mode mode) const;
  bool backward_step() const;  ///< this iteration ended a window
  Phase phase() const;
  std::string phase_text() const;  ///< what lines about the running phase begin with: "epoch 3/10 train"
  ExitReason exit_reason() const;

  // --- this iteration ---
  const Batch& batch() const;
  const Outputs& outputs() const;  ///< tensors without graph
  /// The training loss, with its graph until the backward pass has run, then undefined.
  const at::Tensor& loss() const;
  /// Adds a value to this iteration's log variables, which logs average and print. A tensor must be 0-dim and
  /// is not read before a line is due.
  void log_value(std::string_view name, const at::Tensor& value);
  void log_value(std::string_view name, double value);
  const Fields& log_values() const;
  /// Values that logs print as they are: the learning rate of each group ("lr", or "pg0_lr" and so on).
  Scalars collect_log_vars() const;

  // --- around a step: GradientHook ---
  at::Tensor gradient_norm() const;  ///< L2, over all parameters, before clipping; 0-dim
  at::Tensor step_skipped() const;   ///< 0-dim bool

  // --- results ---
  /// The latest metrics of a mode: those of its last finished phase.
  const Scalars& metrics(Mode mode) const;
  /// Weighted means of the outputs over the running phase, a resumed one's earlier part included.
  const FieldMeans& phase_means() const;
  /// For the run's report: the best value so far of a metric that something is chosen by.
  void report_best(std::string_view metric, double value);

  // --- what is worth looking at: see probe.h ---
  Probes& probes() const;

  // --- evaluating on the side ---
  /// One pass of the model over a batch of anyone's, as an evaluation does it, with random numbers from `seed` alone.
  /// Leaves everything as it was. Not inside of a forward pass.
  Outputs evaluate(const Batch& batch, uint64_t seed);
  /// What EvaluationWeights hooks offer now, all together; empty where there is none.
  State evaluation_weights() const;

  // --- parts; null where the configuration has none ---
  torch::nn::Module* model() const;
  Optimizer* optimizer() const;
  const LrScheduler* lr_scheduler() const;
  StepEngine* engine() const;

  /// Of one sample's forward pass, as BaseSolver::register_flops counted it; 0 before.
  int64_t model_flops() const;
  /// Counts them, for the first sample of the running iteration's batch.
  int64_t register_flops();
  /// From now on the time spent in each hook is taken: two readings of the clock for every call.
  void time_hooks();
  Scalars hook_seconds() const;  ///< since time_hooks(), by the hook's name

  /// The configuration with its defaults, as YAML, and each setting that the result depends on.
  std::string config_text() const;
  const std::vector<std::pair<std::string, std::string>>& settings() const;

  /// What a checkpoint that is saved now holds, as aliases; its paths are those of the checkpoint's files. Where nothing
  /// is half done: in before_iter of a window's first iteration, in on_resume, at a save point.
  State state() const;

  const std::string& work_dir() const;
  const Logger& logger() const;
  World& world() const;

  // --- requests: served at the next save point ---
  void request_checkpoint(std::string_view why);
  void request_stop(Stop how, std::string_view why);
  Stop stop_requested() const;

  /// Training data are ordered, and datasets that draw a subset draw it, anew every so many epochs: 1 unless a hook
  /// says otherwise. Before training.
  void draw_data_every(int64_t epochs);

  // --- checkpoints ---
  /// Where they are written, and how they are named.
  CheckpointStore& checkpoints();
  /// From the moment that the log says "signals armed": those of ENV.SIGNALS ask for a pause in place of ending the
  /// process. Call it in before_solve.
  void pause_on_signals();
  /// From now on checkpoints are written while training goes on: a save takes a copy of the state and returns. Who
  /// observes checkpoints hears of one at the first save point after it is there; a failure ends the run there. At most
  /// one is being written: the next save waits for it, and so does the end of the run. Call it in before_solve.
  void save_in_background();

  struct Impl;
  explicit Solver(std::unique_ptr<Impl> impl);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  Impl& impl() { return *impl_; }  ///< the SDK's own

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry
