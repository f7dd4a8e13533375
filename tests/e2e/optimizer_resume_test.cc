#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/resume.h"

// Whatever an optimizer keeps from step to step is in a checkpoint.

namespace {

using e2e::Job;

const char kGroup[] = ", PARAM_GROUPS: [{MATCH: bias$, LEARNING_RATE: 0.003}]}";

}  // namespace

TEST_CASE("a run with any optimizer and two groups stopped within an epoch goes on to the same bytes") {
  for (const char* options :
       {"Adadelta, LEARNING_RATE: 1, RHO: 0.8, WEIGHT_DECAY: 0.01",
        "Adagrad, LEARNING_RATE: 0.02, LEARNING_RATE_DECAY: 0.1", "Adam, LEARNING_RATE: 0.01, AMSGRAD: true",
        "Adamax, LEARNING_RATE: 0.01, WEIGHT_DECAY: 0.01", "ASGD, LEARNING_RATE: 0.05, LAMBD: 0.01, T0: 2",
        "RMSprop, LEARNING_RATE: 0.01, MOMENTUM: 0.9, CENTERED: true", "Rprop, LEARNING_RATE: 0.001"}) {
    CAPTURE(options);
    const std::vector<std::string> changes = {std::string("SOLVER.OPTIMIZER={NAME: ") + options + kGroup,
                                              "SOLVER.MAX_EPOCHS=2", "SOLVER.LIMIT_TRAIN_BATCHES=7"};
    std::vector<std::string> stop = changes;
    stop.push_back(e2e::at_iteration(5));
    Job undisturbed, stopped;
    undisturbed.run(changes);
    stopped.run(stop, 75);
    CHECK(stopped.link("last") == "ldm_step-6");
    stopped.resume(changes);
    REQUIRE(undisturbed.losses().size() == 14);
    CHECK(undisturbed.link("last") == "ldm_step-14");
    e2e::check_same_training(undisturbed, stopped);
    CHECK(e2e::checkpoint_difference(undisturbed.checkpoint(7), undisturbed.checkpoint(14)) ==
          "model.safetensors differs; optimizer.safetensors differs; state.safetensors differs; ");
  }
}
