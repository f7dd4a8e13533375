#pragma once

#include <string>

#include "gantry/loader.h"
#include "solver_impl.h"

/// What the loops of training and of evaluation share.
namespace gantry {

/// The batch's tensors, on the device.
void move_to(Batch& batch, at::Device device);
/// How much the outputs say the batch counts.
double output_weight(const Outputs& outputs, double otherwise);
/// What a dataset or a transform throws comes without the place in the run, which loader threads don't know: with it.
bool next_batch(const Solver::Impl& s, Loader& loader, Batch& batch);
Scalars means_of(const Frame& frame);

/// Waits for the next batch. Returns false when a pause is asked for meanwhile and `may_stop`.
template <class MayStop>
bool wait_for_data(Solver::Impl& s, Loader& loader, MayStop&& may_stop) {
  if (!s.can_be_interrupted()) return true;
  do {
    s.poll_interrupts();
    if (s.stop == Stop::pause && may_stop()) return false;
  } while (!loader.wait(std::chrono::milliseconds(50)));
  return true;
}

}  // namespace gantry
