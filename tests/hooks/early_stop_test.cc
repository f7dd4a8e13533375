#include "hooks/odd_job.h"

// When EarlyStopHook ends a run.

namespace {

using e2e::contains;
using e2e::Job;
using e2e::operator+;

/// One iteration per epoch and, after each, an evaluation with the next of these figures; ten epochs at most.
std::vector<std::string> figures(const std::string& values, const std::string& keys) {
  return {"SOLVER.LIMIT_TRAIN_BATCHES=1", "SOLVER.METRICS=[{NAME: test/ListedMetric, VALUES: [" + values + "]}]",
          "SOLVER.MAX_EPOCHS=10", e2e::with_hook("{NAME: EarlyStopHook, " + keys + "}")};
}

}  // namespace

TEST_CASE("training ends after as many evaluations without improvement as PATIENCE says") {
  struct Case {
    const char *values, *keys;
    int epochs;
  };
  for (const Case& c : {
           Case{"1, 2, 3, 3, 2, 9", "METRIC: +listed, PATIENCE: 2", 5},
           Case{"5, 4, 3, 3, 4, 1", "METRIC: -listed, PATIENCE: 2", 5},
           Case{"1, 2, 1, 3, 1, 4, 1, 5, 1, 6", "METRIC: listed, PATIENCE: 2", 10},
           Case{"1, 1.4, 1.6, 1.7, 9", "METRIC: +listed, PATIENCE: 1, MIN_DELTA: 0.5", 2},
           Case{"1, 1.75, 2, 2, 9", "METRIC: +listed, PATIENCE: 1, MIN_DELTA: 0.5", 3},
           Case{"9, 1, 1, 1, 1, 1, 8", "METRIC: +listed, PATIENCE: 2, START_EPOCH: 3", 5},
           Case{"-5, -4, -6, -7, 0", "METRIC: +listed, PATIENCE: 2", 4},
       }) {
    INFO(c.values << " with " << c.keys);
    Job job(e2e::kOddJob);
    const e2e::RunResult result = job.run(figures(c.values, c.keys));
    CHECK(e2e::json_number(result.last_line(), {"epoch"}) == c.epochs);
    CHECK(e2e::json_value(result.last_line(), {"status"}) == "done");
  }
}

TEST_CASE("the reason for an early end is told and tests still run") {
  Job job(e2e::kOddJob);
  const e2e::RunResult result =
      job.run(figures("1, 3, 2, 2", "METRIC: +listed, PATIENCE: 2") +
              std::vector<std::string>{"SOLVER.TEST_DATA={NAME: test/Points, SIZE: 6, BATCH_SIZE: 4, NUM_WORKERS: 0}"});
  CHECK(contains(result.err, "stopping: listed has not improved in 2 evaluations; the best was 3.0000 in epoch 2"));
  CHECK(e2e::json_value(result.last_line(), {"metrics", "test", "loss"}).has_value());
  CHECK(job.link("last") == "ldm_step-4");
}

TEST_CASE("a metric that is NaN counts as no improvement and is warned of") {
  Job job(e2e::kOddJob);
  const e2e::RunResult result = job.run(figures("nan, 0.5, nan, nan, 9", "METRIC: +listed, PATIENCE: 2"));
  CHECK(e2e::json_number(result.last_line(), {"epoch"}) == 4);
  CHECK(contains(result.err, "listed is NaN: that counts as no improvement"));
  Job all(e2e::kOddJob);
  CHECK(e2e::json_number(all.run(figures("nan", "METRIC: -listed, PATIENCE: 3")).last_line(), {"epoch"}) == 3);
}

TEST_CASE("a metric that the evaluation does not have ends the run with a near name") {
  Job job(e2e::kOddJob);
  const e2e::RunResult result = job.run(figures("1", "METRIC: +listd"), 1);
  CHECK(contains(result.err, "METRIC is 'listd', which the evaluation does not have; did you mean 'listed'?"));
}

TEST_CASE("without an evaluation there is a warning and training goes to its end") {
  Job job(e2e::kOddJob);
  const e2e::RunResult result =
      job.run(figures("1", "METRIC: +listed") + std::vector<std::string>{"SOLVER.EVAL_DATA=null"});
  CHECK(e2e::json_number(result.last_line(), {"epoch"}) == 10);
  CHECK(contains(result.err, "there was no evaluation to stop by"));
}

TEST_CASE("a test does not count as an evaluation") {
  // The values go on: the test sees 0.
  Job job(e2e::kOddJob);
  std::vector<std::string> changes = figures("1, 2, 3, 0", "METRIC: +listed, PATIENCE: 1");
  changes[2] = "SOLVER.MAX_EPOCHS=3";
  const e2e::RunResult result =
      job.run(changes +
              std::vector<std::string>{"SOLVER.TEST_DATA={NAME: test/Points, SIZE: 6, BATCH_SIZE: 4, NUM_WORKERS: 0}"});
  CHECK_FALSE(contains(result.err, "has not improved"));
}

TEST_CASE("the count of evaluations without improvement goes on in a resumed run") {
  const std::vector<std::string> changes = figures("5, 6, 5, 5, 5, 9", "METRIC: +listed, PATIENCE: 3");
  Job undisturbed(e2e::kOddJob), stopped(e2e::kOddJob);
  undisturbed.run(changes);
  for (const char* point : {"eval.after_iter", "eval.evaluated", "train.after_epoch"}) {
    INFO(point);
    Job again(e2e::kOddJob);
    again.run(changes + e2e::at_point(point, 4), 75);
    const e2e::RunResult result = again.resume(changes);
    CHECK(e2e::json_number(result.last_line(), {"epoch"}) == 5);
    e2e::check_same_training(undisturbed, again);
  }
  // A run that it has ended stays ended.
  const e2e::RunResult more = undisturbed.resume(changes);
  CHECK(e2e::json_number(more.last_line(), {"epoch"}) == 5);
  CHECK(contains(more.err, "a hook had finished this run"));
}
