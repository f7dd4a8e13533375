#pragma once

#include <string_view>

#include "gantry/export.h"
#include "gantry/fields.h"
#include "gantry/state.h"

namespace gantry {

class Solver;

/// The means that hooks write down: those since their last line, and over the running phase, for each mode. Adding
/// waits for no device; what is not due yet is state, so that a resumed run writes the same lines. Main thread.
///
///   before_all_iter: begin_phase(solver)    after_iter: add(solver), and take(solver) when a line is due
class GANTRY_API LineMeans final {
 public:
  void begin_phase(const Solver& solver);
  /// The running iteration: its outputs by their weight, and what was logged with log_value.
  void add(const Solver& solver);

  /// Means of this mode since the last call, outputs first; values that did not come since then are left out.
  Scalars take(const Solver& solver);
  /// Means over the running phase: of an output as the solver has them, or of a logged value. NaN: there is none.
  double phase_mean(const Solver& solver, std::string_view name) const;
  /// What a phase ends with: its metrics, then the means of the logged values.
  Scalars phase(const Solver& solver) const;

  State state() const;
  void load_state(const State& state);

 private:
  struct Means {
    FieldMeans outputs, values, phase_values;
  };
  Means means_[3];
};

}  // namespace gantry
