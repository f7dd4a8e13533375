#pragma once

#include "gantry/export.h"
#include "gantry/parameters.h"

namespace gantry {

class Solver;

/// Something that hangs on the solver's fixed points. Derive, override the points you need, register with
/// GANTRY_HOOK. Abilities beyond the eight points are capability interfaces (capability.h) that the class
/// derives from as well.
///
/// Order, within each point: ascending PRIORITY, ties in the list's order, those of HOOKS first. Backward 0; logs,
/// TensorBoard and EMA 100; learning rate, probes and exports 200; checkpoints 300; samplers 400.
///
/// Thread: the main thread only. Lifetime: built before data and model, destroyed after them; `solver` and
/// all that it hands out are valid during the call alone, but the Solver itself outlives the hook.
///
/// An exception ends the run: the message names the plugin, the point and the iteration, and `after_solve`
/// of every hook whose `before_solve` returned still runs.
///
/// before_iter and after_iter are on the path of every iteration: nothing there may wait for the device
/// (`.item()`), allocate without need, or build text, except when a line is due.
class GANTRY_API Hook {
 public:
  static void declare_common(Parameters& parameters);

  Hook();
  virtual ~Hook();
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  /// Once per process, before anything runs, and before a resumed state is restored.
  virtual void before_solve(Solver& solver);
  /// A phase begins: a training epoch, an evaluation, a test. `solver.mode()` is already the phase's.
  virtual void before_epoch(Solver& solver);
  virtual void before_all_iter(Solver& solver);
  virtual void before_iter(Solver& solver);  ///< `solver.batch()` is there, not yet on the device
  virtual void after_iter(Solver& solver);   ///< outputs are there; total_iter is this iteration's index
  virtual void after_all_iter(Solver& solver);
  /// The phase ends. For training, the evaluation that was due has run: its metrics are there.
  virtual void after_epoch(Solver& solver);
  /// Once, on every exit, errors included: ask `solver.exit_reason()`. Must not throw for lack of anything.
  virtual void after_solve(Solver& solver);
};

}  // namespace gantry
