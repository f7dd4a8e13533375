#pragma once

#include <string>

#include "gantry/export.h"
#include "gantry/fields.h"
#include "gantry/lr_scheduler.h"
#include "gantry/state.h"

/// Abilities that a hook, or where said another component, has beside its own interface: the class derives
/// from them as well, and the solver finds them by dynamic_cast. Each instance is called once per event,
/// whatever list it stands in, in the order of the hooks. New abilities are added here as new classes;
/// existing ones never change.

namespace gantry {

class ParamGroup;
class Solver;
struct CheckpointInfo;

/// Around the optimizer step. Hooks.
class GANTRY_API GradientHook {
 public:
  virtual ~GradientHook();
  /// Gradients are whole: summed over the window and all processes, unscaled, clipped. The learning rate
  /// about to be used is set.
  virtual void before_step(Solver& solver);
  /// The parameters are updated, gradients not yet zeroed. Always follows before_step: `step_skipped()` says
  /// whether the update was left out.
  virtual void after_step(Solver& solver);
};

/// After any evaluation or test, once its metrics are computed. Hooks and learning-rate schedules.
class GANTRY_API EvalObserver {
 public:
  virtual ~EvalObserver();
  virtual void evaluated(Solver& solver, Mode mode, const Scalars& metrics) = 0;
};

/// Has state that a resumed run needs. Hooks, datasets, samplers, schedules, metrics, losses.
class GANTRY_API Stateful {
 public:
  virtual ~Stateful();
  /// The state, as aliases: the solver copies before anything runs on.
  virtual State state() const = 0;
  /// `version` is the one that the state was saved with. Throw gantry::Error when it cannot be taken.
  virtual void load_state(const State& state, int version) = 0;
  virtual int state_version() const;  ///< 1; raise it when the state's meaning changes
};

/// Rebuilds something after the solver restored a checkpoint. Hooks.
class GANTRY_API ResumeObserver {
 public:
  virtual ~ResumeObserver();
  virtual void on_resume(Solver& solver) = 0;
};

/// Is told of an error that ends the run, before any after_solve. Hooks.
class GANTRY_API ExceptionObserver {
 public:
  virtual ~ExceptionObserver();
  virtual void on_exception(Solver& solver, const std::string& message) = 0;
};

/// Is told of each checkpoint that the solver has published, whoever asked for it. Hooks.
class GANTRY_API CheckpointObserver {
 public:
  virtual ~CheckpointObserver();
  virtual void checkpoint_saved(Solver& solver, const CheckpointInfo& saved) = 0;
};

/// Has a say in the learning rate, after the schedule and before each optimizer step. Hooks; several apply in order.
class GANTRY_API LearningRateHook {
 public:
  virtual ~LearningRateHook();
  /// The rate to use in place of `scheduled`: what the schedule, or an earlier hook, gave; the group's base rate where
  /// there is no schedule. A pure function of its arguments, so that there is nothing to save.
  virtual double learning_rate(const SchedulePosition& position, double scheduled, const ParamGroup& group) const = 0;
  /// Whether schedules that count epochs are to see the fraction of the running one. Default: no.
  virtual bool fractional_epochs() const;
};

/// Has other weights that evaluations and tests are to run with, such as an average over the training. Hooks. The
/// solver puts them into the model for as long as a phase of theirs lasts, and then the model's own back.
class GANTRY_API EvaluationWeights {
 public:
  virtual ~EvaluationWeights();
  /// By the names of the model's parameters and buffers; those left out stay as they are. Empty: not now.
  virtual State evaluation_weights() const = 0;
};

/// Records what happened, for a test to compare afterwards: see test_callback.h. Hooks. What it recorded is no state of
/// the run.
class GANTRY_API Recorder {
 public:
  virtual ~Recorder();
  virtual std::string recording() const = 0;  ///< the path of the file that it writes
};

}  // namespace gantry
