#include <gantry/gantry.h>
#include <gantry/test_callback.h>

namespace gantry {
namespace {

class TrainValInitConsumedSamplesStopAndGoCallback final : public AbstractStopAndGoCallback {
 public:
  using AbstractStopAndGoCallback::AbstractStopAndGoCallback;

  State get_metadata(Solver& solver) override {
    State consumed;
    consumed.set_int("train", solver.consumed_samples(Mode::train));
    consumed.set_int("eval", solver.consumed_samples(Mode::eval));
    return consumed;
  }
};

}  // namespace

GANTRY_HOOK(TrainValInitConsumedSamplesStopAndGoCallback, "TrainValInitConsumedSamplesStopAndGoCallback",
            "Test callback: samples of training and evaluation consumed before a pause, and after going on.");

}  // namespace gantry
