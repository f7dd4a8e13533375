#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gantry/capability.h"
#include "gantry/context.h"
#include "gantry/hook.h"
#include "gantry/recording.h"
#include "gantry/solver.h"

/// Test callbacks: hooks that write down what a run does, so that an interrupted run can be compared with one that was
/// not: `gantry stop-and-go`. Derive from one of these classes and call record() where something is worth comparing:
///
///   class TrainLossCallback : public gantry::BaseInterruptedVsContinuousCallback {
///     using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;
///     void after_iter(gantry::Solver& solver) override {
///       if (solver.mode() == gantry::Mode::train) record(solver, {{"loss", solver.outputs().tensor("loss")}});
///     }
///   };
///
/// The words of BioNeMo's callbacks, here: a step starts with before_iter of a window's first iteration
/// (`starts_step(solver)`); a micro-batch ends with after_iter, before BackwardHook for a PRIORITY below 0; a step ends
/// with after_iter where `solver.backward_step()`, in evaluations with every after_iter; the validation epoch ends with
/// the evaluation's after_epoch; the training epoch starts with before_epoch, or with on_resume in a pass that is
/// resumed in the middle. There is no sanity check. Put them under SOLVER.HOOKS, so that they attend every mode.
namespace gantry {

/// Compares an interrupted with a continuous run: all that record() was given, entry by entry, bit for bit. The entries
/// carry a running number that checkpoints keep; those of a segment that the next one repeats (after a kill, or in an
/// evaluation that was cut short) are dropped. What was recorded is no state of the run.
///
/// Parameters of all: TOLERANCE (0: bits; else floating-point values may differ by so much times the largest magnitude
/// in the tensor; whole numbers never), VALUES (digests | whole: keep whole values, so that a difference shows
/// numbers). PRIORITY is -100 unless a class says otherwise.
class GANTRY_API BaseInterruptedVsContinuousCallback : public Hook, public Recorder, public Stateful {
 public:
  static void declare(Parameters& parameters);
  BaseInterruptedVsContinuousCallback(const Config& config, Context& context);
  ~BaseInterruptedVsContinuousCallback() override;

  std::string recording() const override;
  /// The running number alone. A class with state of its own adds to it, and hands it on to the base's load_state.
  State state() const override;
  void load_state(const State& state, int version) override;
  /// A class that overrides it calls this one.
  void after_solve(Solver& solver) override;

 protected:
  /// Adds an entry. Tensors may live anywhere and are done with when this returns.
  void record(const Solver& solver, const Fields& values);
  void record(const Solver& solver, const State& values);
  /// Drops what there is, and makes this the only entry, outside of the running number.
  void record_alone(const Solver& solver, const State& values);
  /// Drops what there is.
  void forget();
  /// In before_iter: whether an optimizer step begins with this iteration.
  static bool starts_step(const Solver& solver);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

enum class StopAndGoMode { stop, resume };

/// Compares what held before a pause with what holds after going on: one instance with MODE: STOP and one with MODE:
/// RESUME. STOP takes the metadata at the end of each evaluation, and in after_solve when the run pauses: the last
/// counts. RESUME takes them once: where the training epoch starts. A segment that was killed is not compared.
class GANTRY_API AbstractStopAndGoCallback : public BaseInterruptedVsContinuousCallback, public ResumeObserver {
 public:
  /// Adds MODE (STOP or RESUME; default STOP).
  static void declare(Parameters& parameters);
  AbstractStopAndGoCallback(const Config& config, Context& context);
  ~AbstractStopAndGoCallback() override;

  /// What must not change, under names.
  virtual State get_metadata(Solver& solver) = 0;

  StopAndGoMode callback_mode() const { return mode_; }
  void before_solve(Solver& solver) override;
  void before_epoch(Solver& solver) override;
  void after_epoch(Solver& solver) override;
  void on_resume(Solver& solver) override;
  void after_solve(Solver& solver) override;

 private:
  const StopAndGoMode mode_;
  bool taken_ = false;
};

}  // namespace gantry
