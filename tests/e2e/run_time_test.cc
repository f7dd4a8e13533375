#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/resume.h"

// ENV.MAX_RUN_TIME: a run pauses by itself before it would be ended.

namespace {

using e2e::Job;
using e2e::RunResult;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// 40 batches of 2 that take a fifth of a second each, in windows of 1.
const std::vector<std::string> kSlow = {
    "SOLVER.TRAIN_DATA={NAME: test/SlowImages, SIZE: 80, MS: 100, BATCH_SIZE: 2, SHUFFLE: false, NUM_WORKERS: 0}",
    "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=1", "SOLVER.MAX_EPOCHS=1"};

std::vector<std::string> slow(std::vector<std::string> more) {
  more.insert(more.end(), kSlow.begin(), kSlow.end());
  return more;
}

std::string unsaved_job() {
  return e2e::replaced(e2e::kJob, "    - {NAME: CheckpointHook, SAVE_LAST: true, SAVE_BEST_BY: -loss}\n", "");
}

}  // namespace

TEST_CASE("a run pauses before its MAX_RUN_TIME and goes on to the same bytes") {
  Job undisturbed, job;
  undisturbed.run(slow({}));
  const RunResult first = job.run(slow({"ENV.MAX_RUN_TIME=5 s"}), 75);
  INFO(first.describe());
  CHECK(first.seconds < 5);
  CHECK(contains(first.err, "pausing: MAX_RUN_TIME"));
  CHECK(contains(first.err, "(MAX_RUN_TIME)"));  // why it was saved
  CHECK(e2e::json_value(first.last_line(), {"status"}) == "interrupted");
  const std::size_t trained = job.losses().size();
  CHECK(trained >= 2);  // it did not give up at once
  CHECK(trained < 40);
  job.resume(slow({}));
  e2e::check_same_training(undisturbed, job);
  CHECK(job.losses().size() == 40);
}

TEST_CASE("without a CheckpointHook the time is kept as well and a checkpoint is there") {
  Job undisturbed(unsaved_job()), job(unsaved_job());
  undisturbed.run(slow({}));
  const RunResult result = job.run(slow({"ENV.MAX_RUN_TIME=4"}), 75);
  INFO(result.describe());
  CHECK(result.seconds < 4);
  CHECK_FALSE(contains(result.err, "signals armed"));
  CHECK(job.names().size() == 1);
  job.resume(slow({}));
  CHECK(job.losses() == undisturbed.losses());
}

TEST_CASE("a run that is late before it begins pauses at the first save point") {
  Job undisturbed, job;
  const std::vector<std::string> quick = {"SOLVER.MAX_EPOCHS=1", "ENV.MAX_RUN_TIME=0.01 s"};
  undisturbed.run({"SOLVER.MAX_EPOCHS=1"});
  CHECK(contains(job.run(quick, 75).err, "MAX_RUN_TIME leaves no time to train"));
  // After a window; or before it, where the data are waited for.
  const std::string first = job.link("last");
  CHECK((first == "ldm_step-0" || first == "ldm_step-3"));
  job.resume(quick, 75);
  CHECK(job.losses().size() <= 6);
  job.resume({"SOLVER.MAX_EPOCHS=1", "ENV.MAX_RUN_TIME=0"});
  e2e::check_same_training(undisturbed, job);
}

TEST_CASE("a window that would end too late is not begun") {
  Job job;
  std::vector<std::string> changes = slow({"ENV.MAX_RUN_TIME=7 s"});
  changes[2] = "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=10";  // two seconds
  const RunResult result = job.run(changes, 75);
  INFO(result.describe());
  CHECK(result.seconds < 7);
  CHECK((job.losses().size() == 10 || job.losses().size() == 20));
}

TEST_CASE("the time is looked at within an evaluation too") {
  const std::vector<std::string> evaluation = {
      "SOLVER.MAX_EPOCHS=1",
      "SOLVER.EVAL_DATA={NAME: test/SlowImages, SIZE: 80, MS: 100, BATCH_SIZE: 2, NUM_WORKERS: 0}"};
  Job job;
  std::vector<std::string> limited = evaluation;
  limited.push_back("ENV.MAX_RUN_TIME=5 s");
  const RunResult result = job.run(limited, 75);
  INFO(result.describe());
  CHECK(result.seconds < 5);
  CHECK(job.link("last") == "ldm_step-10");
  CHECK(job.losses().size() == 10);
}

TEST_CASE("a time that is long enough changes nothing") {
  Job undisturbed, job;
  undisturbed.run({"SOLVER.MAX_EPOCHS=1"});
  const RunResult result = job.run({"SOLVER.MAX_EPOCHS=1", "ENV.MAX_RUN_TIME=2 h"});
  CHECK(contains(result.err, "MAX_RUN_TIME: 7200 s after the program's start"));
  e2e::check_same_training(undisturbed, job);
}

TEST_CASE("MAX_RUN_TIME is a time and nothing else") {
  for (const std::string value : {"2 epochs", "100 iters", "90 sheep", "soon", "-1", "[1]"}) {
    Job job(e2e::replaced(e2e::kJob, "SEED: 1,", "SEED: 1, MAX_RUN_TIME: " + value + ","));
    const RunResult result = e2e::run_gantry({"check", "job.yaml", "--plugin-dir", GANTRY_PROBE_DIR}, job.dir.path());
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "job.yaml:2: MAX_RUN_TIME must be "));
  }
}
