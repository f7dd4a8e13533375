#include "regress/trials.h"

// Gradients of a window that a checkpoint fell into were lost.

namespace {

using namespace trials;
using e2e::at_iteration;
using e2e::Job;

const Changes kWindows = {"SOLVER.MAX_EPOCHS=2", windows_of(4)};  // of 4, 4 and 2 batches

}  // namespace

TEST_CASE("a signal at any batch of a window waits for its update and the next one is that of an undisturbed run") {
  Job undisturbed;
  undisturbed.run(kWindows);
  for (int64_t batch = 0; batch < 4; ++batch) {
    INFO("batch " << batch << " of the second window");
    Job stopped;
    stopped.run(kWindows + Changes{at_iteration(4 + batch)}, 75);
    CHECK(stopped.link("last") == "ldm_step-8");
    CHECK(stopped.losses().size() == 8);
    stopped.resume(kWindows);
    e2e::check_same_training(undisturbed, stopped);
    e2e::check_same_counts(undisturbed, stopped);  // of steps too
  }
}

TEST_CASE("three stops within windows change no update") {
  Job undisturbed, stopped;
  undisturbed.run(kWindows);
  run_with_stops(stopped, kWindows, {{at_iteration(1)}, {at_iteration(6)}, {at_iteration(8)}});
  CHECK(stopped.names() ==
        std::vector<std::string>{"best", "last", "ldm_step-10", "ldm_step-20", "ldm_step-4", "ldm_step-8"});
  e2e::check_same_training(undisturbed, stopped);
  e2e::check_same_counts(undisturbed, stopped);
}
