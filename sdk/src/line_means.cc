#include "gantry/line_means.h"

#include <limits>

#include "gantry/solver.h"

namespace gantry {

namespace {

constexpr Mode kModes[] = {Mode::train, Mode::eval, Mode::test};

/// As the solver weighs them.
double weight_of(const Solver& solver) {
  const Value* weight = solver.outputs().find("weight");
  if (weight != nullptr) {
    if (const auto* number = std::get_if<double>(weight)) return *number;
    if (const auto* count = std::get_if<int64_t>(weight)) return static_cast<double>(*count);
  }
  return solver.batch().weight;
}

}  // namespace

void LineMeans::begin_phase(const Solver& solver) { means_[static_cast<int>(solver.mode())].phase_values.reset(); }

void LineMeans::add(const Solver& solver) {
  Means& means = means_[static_cast<int>(solver.mode())];
  means.outputs.add(solver.outputs(), weight_of(solver));
  for (FieldMeans* values : {&means.values, &means.phase_values}) values->add(solver.log_values(), 1);
}

Scalars LineMeans::take(const Solver& solver) {
  Means& means = means_[static_cast<int>(solver.mode())];
  Scalars line;
  for (FieldMeans* window : {&means.outputs, &means.values}) {
    for (const auto& [name, mean] : window->entries())
      if (mean.weight() != 0) line.set(name, mean.mean());
    window->reset();
  }
  return line;
}

double LineMeans::phase_mean(const Solver& solver, std::string_view name) const {
  const MeanMeter* mean = solver.phase_means().find(name);
  if (mean == nullptr) mean = means_[static_cast<int>(solver.mode())].phase_values.find(name);
  return mean == nullptr ? std::numeric_limits<double>::quiet_NaN() : mean->mean();
}

Scalars LineMeans::phase(const Solver& solver) const {
  Scalars all = solver.metrics(solver.mode());
  for (const auto& [name, mean] : means_[static_cast<int>(solver.mode())].phase_values.entries())
    if (mean.weight() != 0 && all.find(name) == nullptr) all.set(name, mean.mean());
  return all;
}

State LineMeans::state() const {
  State state;
  for (Mode mode : kModes) {
    const Means& means = means_[static_cast<int>(mode)];
    const std::string path = mode_name(mode);
    state.merge(path + "/outputs", means.outputs.state());
    state.merge(path + "/values", means.values.state());
    state.merge(path + "/phase_values", means.phase_values.state());
  }
  return state;
}

void LineMeans::load_state(const State& state) {
  for (Mode mode : kModes) {
    Means& means = means_[static_cast<int>(mode)];
    const State saved = state.child(mode_name(mode));
    means.outputs.load_state(saved.child("outputs"));
    means.values.load_state(saved.child("values"));
    means.phase_values.load_state(saved.child("phase_values"));
  }
}

}  // namespace gantry
