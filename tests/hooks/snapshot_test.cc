#include "hooks/odd_job.h"

// When CheckpointHook saves: its unit, and not at all.

namespace {

using e2e::Job;
using e2e::operator+;
using Names = std::vector<std::string>;

const std::string kHook = "SOLVER.HOOKS[CheckpointHook].";

}  // namespace

TEST_CASE("a bare interval counts epochs in an epoch loop and iterations in a step loop") {
  Job epochs(e2e::kOddJob), steps(e2e::kOddJob), unset(e2e::kOddJob);
  epochs.run({kHook + "INTERVAL=2", "SOLVER.MAX_EPOCHS=4"});
  CHECK(epochs.names() == Names{"last", "ldm_step-14", "ldm_step-28"});
  const std::vector<std::string> loop = {"SOLVER.MAX_EPOCHS=null", "SOLVER.MAX_STEPS=10"};
  steps.run(loop + std::vector<std::string>{kHook + "INTERVAL=4"});
  CHECK(steps.names() == Names{"last", "ldm_step-10", "ldm_step-4", "ldm_step-8"});
  // Unset: after each pass over the data, and at the end.
  unset.run(loop + std::vector<std::string>{kHook + "SAVE_LAST=false"});
  CHECK(unset.names() == Names{"last", "ldm_step-10", "ldm_step-7"});
}

TEST_CASE("an interval of epochs saves the last of them") {
  Job job(e2e::kOddJob);
  job.run({kHook + "INTERVAL=3", kHook + "SAVE_LAST=false", "SOLVER.MAX_EPOCHS=3"});
  CHECK(job.names() == Names{"last", "ldm_step-21"});
}

TEST_CASE("SAVE_LAST saves the iteration that ends a step loop and the epoch that a hook ends training in") {
  Job steps(e2e::kOddJob), stopped(e2e::kOddJob);
  steps.run({"SOLVER.MAX_EPOCHS=null", "SOLVER.MAX_STEPS=9", kHook + "INTERVAL=0"});
  CHECK(steps.names() == Names{"last", "ldm_step-9"});
  stopped.run({"SOLVER.MAX_EPOCHS=9", kHook + "INTERVAL=0",
               e2e::with_hook("{NAME: EarlyStopHook, METRIC: +loss, PATIENCE: 1, MIN_DELTA: 100}")});
  CHECK(stopped.names() == Names{"last", "ldm_step-14"});
}

TEST_CASE("with DISABLE_SNAPSHOT only a pause saves and goes on from there") {
  const std::vector<std::string> changes = {kHook + "DISABLE_SNAPSHOT=true", kHook + "INTERVAL=2 iters",
                                            kHook + "SAVE_BEST_BY=-loss",
                                            e2e::with_hook("{NAME: SafetensorsHook, INTERVAL: 0}")};
  Job undisturbed(e2e::kOddJob), stopped(e2e::kOddJob);
  const e2e::RunResult result = undisturbed.run(changes);
  CHECK(undisturbed.names().empty());
  CHECK(e2e::json_value(result.last_line(), {"best", "loss"}).has_value());
  CHECK(undisturbed.names("work/safetensors") == Names{"ldm_step-14.safetensors"});
  stopped.run(changes + std::vector{e2e::at_iteration(4)}, 75);
  CHECK(stopped.names() == Names{"last", "ldm_step-5"});
  stopped.resume(changes);
  CHECK(stopped.names() == Names{"last", "ldm_step-5"});
  CHECK(stopped.dir.read("work/safetensors/ldm_step-14.safetensors") ==
        undisturbed.dir.read("work/safetensors/ldm_step-14.safetensors"));
}

TEST_CASE("a checkpoint in minutes is saved once they have passed") {
  Job job(e2e::kOddJob);
  job.run({kHook + "INTERVAL=0.0001 min", kHook + "SAVE_LAST=false",
           "SOLVER.TRAIN_DATA={NAME: test/Points, SIZE: 4000, BATCH_SIZE: 1, NUM_WORKERS: 0}", "SOLVER.MAX_EPOCHS=1"});
  CHECK(job.names().size() > 2);
  Job hours(e2e::kOddJob);
  hours.run({kHook + "INTERVAL=1 h", kHook + "SAVE_LAST=false"});
  CHECK(hours.names().empty());
}

TEST_CASE("the keys of SCEPTER that upload a checkpoint are refused with what to do") {
  Job job(e2e::kOddJob);
  const e2e::RunResult result = job.run({kHook + "PUSH_TO_HUB=true"}, 2);
  CHECK(e2e::contains(result.err, "PUSH_TO_HUB"));
  CHECK(e2e::contains(result.err, "upload what SafetensorsHook writes"));
  Job neutral(e2e::kOddJob);
  neutral.run({kHook + "PUSH_TO_HUB=false", kHook + "HUB_MODEL_ID=me/model"});
}
