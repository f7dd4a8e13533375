#include <ATen/ops/from_blob.h>
#include <gantry/gantry.h>
#include <gantry/test_callback.h>

// What the data gave.

namespace gantry {
namespace {

/// Aliases the batch: for record(), which copies.
at::Tensor ids_of(const Batch& batch) {
  return at::from_blob(const_cast<int64_t*>(batch.ids.data()), {batch.size()}, at::kLong);
}

template <Mode recorded>
class InputCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void after_iter(Solver& solver) override {
    if (solver.mode() != recorded) return;
    const Batch& batch = solver.batch();
    Fields values{{"ids", ids_of(batch)}, {"first_position", batch.first_position}, {"weight", batch.weight}};
    for (const auto& [name, value] : batch.entries()) values.set("batch/" + name, value);
    record(solver, values);
  }
};
using TrainInputCallback = InputCallback<Mode::train>;
using ValidInputCallback = InputCallback<Mode::eval>;

class SampleIdCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void before_iter(Solver& solver) override { record(solver, Fields{{"ids", ids_of(solver.batch())}}); }
};

}  // namespace

GANTRY_HOOK(TrainInputCallback, "TrainInputCallback",
            "Test callback: each training batch, whole: its fields, sample ids, position and weight.");
GANTRY_HOOK(ValidInputCallback, "ValidInputCallback",
            "Test callback: each batch of an evaluation, whole: its fields, sample ids, position and weight.");
GANTRY_HOOK(SampleIdCallback, "SampleIdCallback", "Test callback: which samples each batch of every mode has.");

}  // namespace gantry
