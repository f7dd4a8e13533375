#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gantry/batch.h"
#include "gantry/config.h"
#include "gantry/context.h"
#include "gantry/export.h"
#include "gantry/loader.h"
#include "gantry/lr_scheduler.h"
#include "gantry/metric.h"
#include "gantry/model.h"
#include "gantry/optimizer.h"
#include "gantry/solver.h"
#include "gantry/state.h"
#include "gantry/step_engine.h"

namespace gantry {

struct CheckpointInfo;

/// Where a request of a hook may be served: nothing is half done, counters are advanced.
enum class SavePoint { after_window, after_evaluation, after_epoch, after_abandoned_evaluation, after_tests };

/// The flow of training, evaluation and test: what a third party derives from to change it. Every member may
/// be overridden; most solvers override run_step_train alone, or the three solve_*.
///
/// Order: constructor, set_up_pre (hooks), set_up (data, model, metrics, device, optimizer), solve. The
/// base class owns the loops, the counters, the learning rate and the calls of hooks; it trains by itself.
///
/// Main thread. Exceptions leave through solve(), which has run after_solve of the hooks by then.
class GANTRY_API BaseSolver {
 public:
  /// The keys of every solver. A derived class calls this first in its own declare.
  static void declare(Parameters& parameters);

  BaseSolver(const Config& config, Context& context);
  virtual ~BaseSolver();
  BaseSolver(const BaseSolver&) = delete;
  BaseSolver& operator=(const BaseSolver&) = delete;

  // --- building ---
  virtual void set_up_pre();
  virtual void set_up();
  virtual void construct_hook();
  virtual void construct_data();
  virtual void construct_model();
  virtual void construct_metrics();
  virtual void model_to_device();
  virtual void init_opti();

  // --- running ---
  virtual void solve();
  virtual void solve_train();  ///< one epoch: before_epoch, run_train, the evaluation if due, after_epoch
  virtual void solve_eval();
  virtual void solve_test();
  virtual void run_train();
  virtual void run_eval();
  virtual void run_test();
  /// One batch, on the device. The default calls the model. The result is what hooks see as outputs.
  virtual Outputs run_step_train(const Batch& batch, int64_t batch_index, int64_t total_iter, int rank);
  virtual Outputs run_step_eval(const Batch& batch, int64_t batch_index, int64_t total_iter, int rank);
  virtual Outputs run_step_test(const Batch& batch, int64_t batch_index, int64_t total_iter, int rank);

  // --- points: call the hooks ---
  /// Also restores the checkpoint that RESUME_FROM names, once the hooks have run, and arms signals.
  virtual void before_solve();
  virtual void after_solve();
  virtual void before_epoch();
  virtual void after_epoch();
  virtual void before_all_iter();
  virtual void after_all_iter();
  virtual void before_iter();
  virtual void after_iter();

  virtual Scalars collect_log_vars();

  /// Counts the floating-point operations of the model's forward pass for one sample: the first of `data`, of
  /// which only `keys` are given to the model, all if empty. A multiply-add counts as two. Changes nothing in
  /// training. The result is also Solver::model_flops().
  virtual int64_t register_flops(const Batch& data, const std::vector<std::string>& keys = {});

  // --- state ---
  /// Everything that the run needs to go on, as aliases.
  virtual State save_checkpoint();
  /// Checks names, dtypes and shapes of everything first, throwing gantry::Error that lists all differences;
  /// only then copies. Inside an epoch, the next solve_train goes on where the state was taken.
  virtual void load_checkpoint(const State& state);
  /// The leaves under "model/" alone, checked in the same way.
  void load_model(const State& state);

  // --- parts ---
  Solver& solver() { return *solver_; }
  const Config& config() const { return config_; }
  Context& context() { return context_; }
  std::shared_ptr<Model> model();

  // Room for members to come, so that plugins built today keep working.
  virtual void reserved_0();
  virtual void reserved_1();
  virtual void reserved_2();
  virtual void reserved_3();
  virtual void reserved_4();
  virtual void reserved_5();
  virtual void reserved_6();
  virtual void reserved_7();

 protected:
  Loader* data(Mode mode);
  std::vector<std::unique_ptr<Metric>>& metrics();
  /// For a derived class that overrides construct_model or construct_data: what it built.
  void set_model(std::shared_ptr<Model> model);
  void set_data(Mode mode, std::unique_ptr<Loader> loader);
  /// Where a save or a stop that hooks asked for is served.
  void save_point(SavePoint where);
  /// Whether the running loop must end: a stop was asked for and served.
  bool stopping() const;

 private:
  friend struct Solver::Impl;
  void resume();
  void resume_model(const CheckpointInfo& from);
  void freeze();
  bool evaluation_due_after_iteration();
  bool evaluation_due_after_epoch();
  void interim_evaluation();
  Outputs forward(const Batch& batch, Mode mode);
  void solve_evaluation(Mode mode, void (BaseSolver::*run)(), SavePoint afterwards);

  Config config_;
  Context& context_;
  std::unique_ptr<Solver> solver_;
};

}  // namespace gantry
