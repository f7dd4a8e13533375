#include <algorithm>

#include "solver_impl.h"

// How iterations, epochs and passes over the data count. Words: a pass is the training data NUM_FOLDS times; an epoch
// one of its folds; MAX_STEPS counts iterations, and cuts the epoch that reaches it.

namespace gantry {

int64_t Solver::Impl::fold_batches() const {
  return (data[static_cast<int>(Mode::train)]->batches_per_epoch() + folds - 1) / folds;
}

Solver::Impl::EpochRange Solver::Impl::epoch_range(int64_t number) const {
  const int64_t fold = (number - 1) % folds;
  const int64_t size = fold_batches();
  const int64_t pass = data[static_cast<int>(Mode::train)]->batches_per_epoch();
  return {(number - 1) / folds + 1, fold * size, std::min(size, pass - fold * size)};
}

int64_t Solver::Impl::iterations_in_epochs(int64_t epochs) const {
  const int64_t pass = data[static_cast<int>(Mode::train)]->batches_per_epoch();
  return epochs / folds * pass + std::min(epochs % folds * fold_batches(), pass);
}

int64_t Solver::Impl::steps_in_iterations(int64_t iterations) const {
  if (engine == nullptr) return 0;
  const int64_t window = engine->accumulate_step(), size = fold_batches();
  const auto steps = [&](int64_t batches) { return (batches + window - 1) / window; };
  const auto within_pass = [&](int64_t batches) { return batches / size * steps(size) + steps(batches % size); };
  const int64_t pass = data[static_cast<int>(Mode::train)]->batches_per_epoch();
  return iterations / pass * within_pass(pass) + within_pass(iterations % pass);
}

bool Solver::Impl::window_completes(const Interval& interval) const {
  const auto count = static_cast<int64_t>(interval.count);
  const Frame& frame = frames.front();
  if (frame.iter == 0) return false;
  switch (unit_of(interval)) {
    case Interval::Unit::iterations: {
      const int64_t window = engine == nullptr ? 1 : engine->accumulate_step();
      const int64_t opened = iterations() - frame.iter + (frame.iter - 1) / window * window;
      return iterations() / count > opened / count;
    }
    case Interval::Unit::steps:
      return engine != nullptr && engine->steps() > 0 && engine->steps() % count == 0;
    default:
      return false;
  }
}

int64_t Solver::consumed_samples(Mode mode) const {
  const Loader* loader = impl_->data[static_cast<int>(mode)].get();
  if (loader == nullptr) return 0;
  int64_t iterations = impl_->total_iter[static_cast<int>(mode)];
  if (mode == Mode::train) {
    // Where the loader begins or goes on: the place that was restored says it, not what has been counted.
    if (impl_->entry.has_value())
      iterations = impl_->iterations_in_epochs(impl_->epoch - 1) + impl_->entry->iter;
    else if (!impl_->frames.empty() && impl_->frames.front().mode == Mode::train)
      iterations = impl_->iterations_in_epochs(impl_->epoch - 1) + impl_->frames.front().iter;
  }
  const int64_t batches = loader->batches_per_epoch(), samples = loader->samples_per_epoch();
  return iterations / batches * samples + std::min(samples, iterations % batches * loader->batch_size());
}

int64_t Solver::Impl::total_max_iter() const {
  if (data[static_cast<int>(Mode::train)] == nullptr) return 0;
  return max_steps > 0 ? max_steps : iterations_in_epochs(max_epochs);
}

bool Solver::Impl::last_epoch() const {
  if (stop == Stop::finish) return true;
  if (max_steps == 0) return epoch >= max_epochs;
  if (frames.empty() || frames.front().mode != Mode::train) return iterations() >= max_steps;
  return iterations() - frames.front().iter + frames.front().max_iter >= max_steps;
}

}  // namespace gantry
