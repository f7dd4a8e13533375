#include <gantry/gantry.h>
#include <gantry/test_callback.h>

#include <variant>

// What the model made of the data.

namespace gantry {
namespace {

template <Mode recorded>
class OutputCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void after_iter(Solver& solver) override {
    if (solver.mode() == recorded) record(solver, solver.outputs());
  }
};
using TrainOutputCallback = OutputCallback<Mode::train>;
using ValidOutputCallback = OutputCallback<Mode::eval>;

/// How much an iteration counts in its window.
double weight_of(const Solver& solver) {
  const Value* value = solver.outputs().find("weight");
  if (value == nullptr) return solver.batch().weight;
  if (const auto* number = std::get_if<double>(value)) return *number;
  return static_cast<double>(std::get<int64_t>(*value));
}

/// The loss of each optimizer step: its window's weighted mean. Within a window nothing stops a run: the sums are no
/// state.
class TrainLossCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  // After the backward pass, which says whether the window ended.
  static void declare(Parameters& p) {
    BaseInterruptedVsContinuousCallback::declare(p);
    p.priority(1000);
  }
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void after_iter(Solver& solver) override {
    if (solver.mode() != Mode::train || solver.engine() == nullptr) return;
    loss_.add(solver.outputs().tensor("loss"), weight_of(solver));
    if (!solver.backward_step()) return;
    record(solver, Fields{{"loss", loss_.mean()}});
    loss_.reset();
  }

 private:
  MeanMeter loss_;
};

/// In an evaluation each batch is a step. Without targets there is no loss.
class ValidLossCallback final : public BaseInterruptedVsContinuousCallback {
 public:
  using BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback;

  void after_iter(Solver& solver) override {
    if (solver.mode() != Mode::eval) return;
    if (const Value* loss = solver.outputs().find("loss")) record(solver, Fields{{"loss", *loss}});
  }
};

}  // namespace

GANTRY_HOOK(TrainOutputCallback, "TrainOutputCallback",
            "Test callback: the model's outputs for each training batch, the loss among them.");
GANTRY_HOOK(ValidOutputCallback, "ValidOutputCallback",
            "Test callback: the model's outputs for each batch of an evaluation, the loss among them.");
GANTRY_HOOK(TrainLossCallback, "TrainLossCallback",
            "Test callback: the loss of each optimizer step, the weighted mean over its window.");
GANTRY_HOOK(ValidLossCallback, "ValidLossCallback", "Test callback: the loss of each batch of an evaluation.");

}  // namespace gantry
