#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/resume.h"

// LBFGS on the whole data as one batch an epoch.

namespace {

using e2e::Job;

constexpr char kFullBatchJob[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 8
  TRAIN_DATA: {NAME: Synthetic, SIZE: 40, SHAPE: [1, 4, 4], NUM_CLASSES: 3, BATCH_SIZE: 40, NUM_WORKERS: 0}
  MODEL: {NAME: Classifier, NUM_CLASSES: 3, BACKBONE: {NAME: Mlp, INPUT_SIZE: 16, HIDDEN: [8]}}
  OPTIMIZER: {NAME: LBFGS, LEARNING_RATE: 0.3, MAX_ITER: 3}
  HOOKS:
    - {NAME: CheckpointHook, SAVE_LAST: true}
    - {NAME: test/LossTrace, FILE: losses.txt}
    - {NAME: test/RaiseSignal, SIGNAL: TERM}
  TRAIN_HOOKS: [{NAME: BackwardHook}]
)";
const std::string kSearch = "SOLVER.OPTIMIZER.LINE_SEARCH_FN=strong_wolfe";
const std::string kDropout = "SOLVER.MODEL.BACKBONE={NAME: test/DropoutMlp, INPUT_SIZE: 16}";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

double loss(const Job& job, const std::vector<std::string>& changes) {
  return e2e::json_number(job.run(changes).last_line(), {"metrics", "train", "loss"});
}

void stop_twice(std::vector<std::string> changes) {
  Job undisturbed(kFullBatchJob), stopped(kFullBatchJob);
  undisturbed.run(changes);
  const auto until = [&](int64_t iteration) {
    std::vector<std::string> all = changes;
    all.push_back(e2e::at_iteration(iteration));
    return all;
  };
  stopped.run(until(0), 75);
  stopped.resume(until(4), 75);
  stopped.resume(changes);
  REQUIRE(undisturbed.losses().size() == 8);
  e2e::check_same_training(undisturbed, stopped);
  CHECK(e2e::checkpoint_difference(undisturbed.checkpoint(7), undisturbed.checkpoint(8)) != "");
}

}  // namespace

TEST_CASE("LBFGS trains on a full batch with and without a line search") {
  Job plain(kFullBatchJob), searching(kFullBatchJob);
  const double first = loss(plain, {"SOLVER.MAX_EPOCHS=1"});
  CHECK(first > 0.8);
  CHECK(loss(plain, {}) < 0.5 * first);
  CHECK(loss(searching, {kSearch, "SOLVER.OPTIMIZER.LEARNING_RATE=1"}) < 0.1 * first);
}

TEST_CASE("LBFGS stopped and resumed goes on to the same bytes") {
  SUBCASE("without a line search") { stop_twice({}); }
  SUBCASE("with a line search") { stop_twice({kSearch}); }
  SUBCASE("with a history that is full") { stop_twice({"SOLVER.OPTIMIZER.HISTORY_SIZE=2", kSearch}); }
  SUBCASE("with random numbers in each evaluation") { stop_twice({kDropout}); }
}

TEST_CASE("LBFGS takes no groups of parameters and says so before anything runs") {
  Job job(kFullBatchJob);
  const e2e::RunResult result = job.run({"SOLVER.OPTIMIZER.PARAM_GROUPS=[{MATCH: bias, LEARNING_RATE: 0.1}]"}, 2);
  CHECK(contains(result.err, "PARAM_GROUPS is to be left out: LBFGS moves all parameters together"));
  CHECK_FALSE(job.dir.has("work"));
}

TEST_CASE("LBFGS refuses windows of several batches") {
  Job job(kFullBatchJob);
  const e2e::RunResult result = job.run({"SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=2"}, 1);
  CHECK(contains(result.err, "ACCUMULATE_STEP"));
}

TEST_CASE("LBFGS ends the run where a move leads to a loss that is not finite") {
  Job job(kFullBatchJob);
  const e2e::RunResult result = job.run({"SOLVER.OPTIMIZER.LEARNING_RATE=1e30"}, 1);
  CHECK(contains(result.err, "within a step of LBFGS"));
  CHECK(contains(result.err, "LINE_SEARCH_FN: strong_wolfe"));
}

TEST_CASE("LBFGS resumed with another part of the model to train says how the two differ") {
  Job job(kFullBatchJob);
  job.run({e2e::at_iteration(2)}, 75);
  const e2e::RunResult result = job.resume({"--allow-config-change", "SOLVER.FREEZE={FREEZE_PART: [head]}"}, 1);
  CHECK(contains(result.err, "numbers to train, here are"));
}
