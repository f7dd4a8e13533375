#include "e2e/resume.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

// A run that stops and goes on ends in the same bytes as one that does not.

namespace {

using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;

const std::string kTwoEpochs = "SOLVER.MAX_EPOCHS=2";
const std::string kPlainWindows = "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=1";
const std::string kTest =
    "SOLVER.TEST_DATA={NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, NUM_WORKERS: 0}";

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The traced points without those of each process's begin and end, and without evaluations that were cut short.
std::vector<std::string> story(const Job& job) {
  std::vector<std::string> kept;
  std::size_t evaluation = 0;
  bool evaluating = false;
  for (const std::string& line : job.lines("trace.txt")) {
    if (line.starts_with("before_solve") || line.starts_with("after_solve")) continue;
    const bool phase = contains(line, " eval ") || contains(line, " test ");
    if (phase && line.starts_with("before_epoch")) {
      if (evaluating) kept.resize(evaluation);
      evaluation = kept.size();
      evaluating = true;
    }
    if (phase && line.starts_with("after_epoch")) evaluating = false;
    kept.push_back(line);
  }
  return kept;
}

int64_t count(const std::vector<std::string>& lines, const std::string& beginning) {
  int64_t n = 0;
  for (const std::string& line : lines) n += line.starts_with(beginning);
  return n;
}

void stop_in_an_epoch_and_after_another(const std::vector<std::string>& changes) {
  Job undisturbed, stopped;
  undisturbed.run(changes);
  stopped.run(changes + std::vector{at_iteration(13)}, 75);
  CHECK(stopped.link("last") == "ldm_step-16");  // the end of the window that was open
  stopped.resume(changes + at_point("train.after_epoch", 3), 75);
  CHECK(stopped.link("last") == "ldm_step-30");
  stopped.resume(changes);

  REQUIRE(undisturbed.losses().size() == 60);
  CHECK(undisturbed.link("last") == "ldm_step-60");
  e2e::check_same_training(undisturbed, stopped);
  e2e::check_same_counts(undisturbed, stopped);
  CHECK(story(stopped) == story(undisturbed));
  // Were two checkpoints always the same, none of this would mean anything.
  CHECK(e2e::checkpoint_difference(undisturbed.checkpoint(50), undisturbed.checkpoint(60)) ==
        "model.safetensors differs; optimizer.safetensors differs; state.safetensors differs; ");
}

}  // namespace

TEST_CASE("a run stopped within an epoch and after another goes on to the same bytes") {
  stop_in_an_epoch_and_after_another({});
}

TEST_CASE("a run with AdamW stopped within an epoch and after another goes on to the same bytes") {
  stop_in_an_epoch_and_after_another({"SOLVER.OPTIMIZER={NAME: AdamW, LEARNING_RATE: 0.01, WEIGHT_DECAY: 0.1}"});
}

TEST_CASE("a run stopped once after any iteration goes on to the same bytes") {
  const std::vector<std::string> small = {kTwoEpochs, kPlainWindows, "SOLVER.LIMIT_TRAIN_BATCHES=4"};
  Job undisturbed;
  undisturbed.run(small);
  for (int64_t k = 0; k < 8; ++k) {
    INFO("stopped after iteration " << k);
    Job stopped;
    stopped.run(small + std::vector{at_iteration(k)}, 75);
    stopped.resume(small);
    e2e::check_same_training(undisturbed, stopped);
    e2e::check_same_counts(undisturbed, stopped);
  }
}

TEST_CASE("a run stopped after every iteration goes on to the same bytes") {
  const std::vector<std::string> small = {kTwoEpochs, kPlainWindows};
  Job undisturbed, stopped;
  undisturbed.run(small);
  stopped.run(small + std::vector{at_iteration(0)}, 75);
  for (int64_t k = 1; k < 20; ++k) stopped.resume(small + std::vector{at_iteration(k)}, 75);
  stopped.resume(small);
  e2e::check_same_training(undisturbed, stopped);
  e2e::check_same_counts(undisturbed, stopped);
  CHECK(story(stopped) == story(undisturbed));
}

TEST_CASE("a run stopped three times within one epoch goes on to the same bytes") {
  Job undisturbed, stopped;
  undisturbed.run({"SOLVER.MAX_EPOCHS=3"});
  stopped.run({"SOLVER.MAX_EPOCHS=3", at_iteration(10)}, 75);
  // How many threads make the batches changes nothing, so it is not worth a warning either.
  const e2e::RunResult alone =
      stopped.resume({"SOLVER.MAX_EPOCHS=3", at_iteration(14), "SOLVER.TRAIN_DATA.NUM_WORKERS=0"}, 75);
  CHECK_FALSE(contains(alone.err, "warning"));
  stopped.resume({"SOLVER.MAX_EPOCHS=3", at_iteration(17)}, 75);
  stopped.resume({"SOLVER.MAX_EPOCHS=3"});
  CHECK(stopped.names() == std::vector<std::string>{"best", "last", "ldm_step-10", "ldm_step-13", "ldm_step-16",
                                                    "ldm_step-19", "ldm_step-20", "ldm_step-30"});
  e2e::check_same_training(undisturbed, stopped);
  e2e::check_same_counts(undisturbed, stopped);
  CHECK(story(stopped) == story(undisturbed));
}

TEST_CASE("a dataset with state goes on to the same bytes") {
  const std::vector<std::string> drifting = {
      "SOLVER.MAX_EPOCHS=3", "SOLVER.TRAIN_DATA={NAME: test/DriftingImages, SIZE: 66, BATCH_SIZE: 7, NUM_WORKERS: 1}"};
  Job undisturbed, stopped;
  undisturbed.run(drifting);
  stopped.run(drifting + std::vector{at_iteration(3)}, 75);
  stopped.resume(drifting + at_point("eval.after_iter", 1, 1), 75);
  stopped.resume(drifting + std::vector{at_iteration(13)}, 75);
  stopped.resume(drifting);
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("without CheckpointHook a run goes on as well from where a hook paused it") {
  Job undisturbed, stopped;
  undisturbed.run({kTwoEpochs});
  stopped.dir.write(
      "job.yaml",
      e2e::replaced(
          e2e::replaced(e2e::kJob, "    - {NAME: CheckpointHook, SAVE_LAST: true, SAVE_BEST_BY: -loss}\n", ""),
          "TRAIN_HOOKS: [", "TRAIN_HOOKS: [{NAME: test/RequestStop, HOW: pause, AT_ITERATION: 13}, "));
  stopped.run({kTwoEpochs}, 75);
  CHECK(stopped.names() == std::vector<std::string>{"ldm_step-16"});
  stopped.resume({kTwoEpochs});
  CHECK(stopped.losses() == undisturbed.losses());
  e2e::check_same_counts(undisturbed, stopped);
  CHECK(story(stopped) == story(undisturbed));
}

TEST_CASE("an evaluation that is cut short runs again from its first batch") {
  Job undisturbed, stopped;
  undisturbed.run({kTwoEpochs});
  stopped.run(at_point("eval.after_iter", 1, 1), 75);
  CHECK(contains(stopped.dir.read("work/checkpoints/last/checkpoint.json"), "\"phase\": \"evaluating_due\""));
  // Two of its three batches had run when it stopped, and again one when it stopped again.
  stopped.resume(at_point("eval.after_iter", 1, 0), 75);
  stopped.resume({kTwoEpochs});
  CHECK(count(stopped.lines("trace.txt"), "after_iter eval 1 ") == 2 + 1 + 3);
  CHECK(count(stopped.lines("trace.txt"), "evaluated train+ 1 ") == 1);
  e2e::check_same_training(undisturbed, stopped);
  e2e::check_same_counts(undisturbed, stopped);
  CHECK(story(stopped) == story(undisturbed));
}

TEST_CASE("a run stopped at any point of an epoch fires no point twice and ends in the same bytes") {
  struct Place {
    const char* point;
    int64_t iter;
    const char* next;  // the phase that the checkpoint enters at
  };
  const std::vector<Place> places = {
      {"train.before_epoch", 0, "iterating"},
      {"train.before_all_iter", 0, "iterating"},
      {"train.before_iter", 0, "iterating"},
      {"train.after_iter", 9, "iterating"},
      {"train.after_all_iter", 0, "evaluating_due"},
      {"eval.before_epoch", 0, "evaluating_due"},
      {"eval.after_iter", 2, "evaluating_due"},
      {"eval.after_all_iter", 0, "pass_done"},
      {"eval.evaluated", 0, "pass_done"},
      {"train.after_epoch", 0, "epoch_done"},
      {"checkpoint_saved", 0, "epoch_done"},
  };
  Job undisturbed;
  undisturbed.run({kTwoEpochs});
  const std::vector<std::string> expected = story(undisturbed);
  for (const Place& place : places) {
    INFO(place.point);
    Job stopped;
    stopped.run(std::vector{kTwoEpochs} + at_point(place.point, 1, place.iter), 75);
    CHECK(contains(stopped.dir.read("work/checkpoints/last/checkpoint.json"),
                   std::string("\"phase\": \"") + place.next + "\""));
    stopped.resume({kTwoEpochs});
    e2e::check_same_training(undisturbed, stopped);
    e2e::check_same_counts(undisturbed, stopped);
    CHECK(story(stopped) == expected);
  }
}

TEST_CASE("a run stopped in its test goes on with the test alone") {
  const std::vector<std::string> small = {"SOLVER.MAX_EPOCHS=1", kTest};
  Job undisturbed, stopped;
  const e2e::RunResult once = undisturbed.run(small);
  stopped.run(small + at_point("test.after_iter", 1, 1), 75);
  CHECK(contains(stopped.dir.read("work/checkpoints/last/checkpoint.json"), "\"phase\": \"testing_due\""));
  const e2e::RunResult again = stopped.resume(small);
  CHECK(story(stopped) == story(undisturbed));
  e2e::check_same_counts(undisturbed, stopped);
  CHECK(stopped.losses() == undisturbed.losses());
  CHECK(e2e::json_value(again.last_line(), {"metrics", "test", "loss"}) ==
        e2e::json_value(once.last_line(), {"metrics", "test", "loss"}));

  // After the test there is nothing left to do.
  Job tested;
  tested.run(small + at_point("test.evaluated", 1), 75);
  CHECK(contains(tested.dir.read("work/checkpoints/last/checkpoint.json"), "\"phase\": \"finished\""));
  tested.resume(small);
  CHECK(story(tested) == story(undisturbed));
}

TEST_CASE("a larger MAX_EPOCHS trains on to the same bytes as if it had been so from the start") {
  const std::string constant = "SOLVER.LR_SCHEDULER=null";
  Job at_once, later;
  at_once.run({constant, "SOLVER.MAX_EPOCHS=4"});
  later.run({constant, kTwoEpochs});
  later.resume({constant, "SOLVER.MAX_EPOCHS=4"});
  e2e::check_same_training(at_once, later);
  e2e::check_same_counts(at_once, later);
  // And with the same MAX_EPOCHS nothing more.
  const std::vector<std::string> before = story(later);
  const e2e::RunResult result = later.resume({constant, "SOLVER.MAX_EPOCHS=4"});
  CHECK(contains(result.err, "all 4 epochs are trained already"));
  CHECK(story(later) == before);
}

TEST_CASE("a run that a hook finished does no more however large MAX_EPOCHS is") {
  Job job(e2e::replaced(e2e::kJob, "TRAIN_HOOKS: [",
                        "TRAIN_HOOKS: [{NAME: test/RequestStop, HOW: finish, AT_ITERATION: 12}, "));
  job.run();
  CHECK(job.link("last") == "ldm_step-13");  // the window of 10 11 12 was the last one
  const std::vector<std::string> before = story(job);
  const e2e::RunResult result = job.resume({"SOLVER.MAX_EPOCHS=9"});
  CHECK(contains(result.err, "a hook had finished this run"));
  CHECK(story(job) == before);
  CHECK(job.link("last") == "ldm_step-13");
}

TEST_CASE("another BATCH_SIZE is refused within an epoch and taken after one") {
  const std::string other = "SOLVER.TRAIN_DATA.BATCH_SIZE=11";
  Job within, after;
  within.run({at_iteration(13)}, 75);
  const std::vector<std::string> names = within.names();
  const e2e::RunResult refused = within.resume({other, "--allow-config-change"}, 2);
  CHECK(contains(refused.err, "data/batch_size: 7 in the checkpoint, which was saved within epoch 2; 11 here"));
  CHECK(within.names() == names);

  after.run(at_point("train.after_epoch", 2), 75);
  const e2e::RunResult taken = after.resume({other, "SOLVER.MAX_EPOCHS=3", "--allow-config-change"});
  CHECK(contains(taken.err, "SOLVER.TRAIN_DATA.BATCH_SIZE: 7 in the checkpoint, 11 here"));
  CHECK(after.link("last") == "ldm_step-26");  // 20 and 6 more
}

TEST_CASE("an evaluation of a checkpoint takes the model alone and gives what training had") {
  // Without dropout in evaluations, which would draw from another place of the generator.
  const std::string exact = "SOLVER.MODEL.BACKBONE.P=0";
  Job job;
  const e2e::RunResult trained = job.run({exact, kTwoEpochs});
  const e2e::RunResult evaluated = job.run({exact, "SOLVER.TRAIN_DATA=null", "SOLVER.WORK_DIR=elsewhere",
                                            "SOLVER.RESUME_FROM=work/checkpoints/ldm_step-20"});
  for (const char* metric : {"loss", "acc@1"}) {
    const double value = e2e::json_number(evaluated.last_line(), {"metrics", "eval", metric});
    CHECK(std::isfinite(value));
    CHECK(value == e2e::json_number(trained.last_line(), {"metrics", "eval", metric}));
  }
  CHECK_FALSE(job.dir.has("elsewhere/checkpoints"));
  const e2e::RunResult earlier = job.run({exact, "SOLVER.TRAIN_DATA=null", "SOLVER.WORK_DIR=elsewhere",
                                          "SOLVER.RESUME_FROM=work/checkpoints/ldm_step-10"});
  CHECK(e2e::json_number(earlier.last_line(), {"metrics", "eval", "loss"}) !=
        e2e::json_number(trained.last_line(), {"metrics", "eval", "loss"}));
  // In the training's own folder it replaces nothing.
  const std::string configuration = job.dir.read("work/config.yaml");
  job.run({exact, "SOLVER.TRAIN_DATA=null", "SOLVER.RESUME_FROM=work/checkpoints/last"});
  CHECK(job.dir.read("work/config.yaml") == configuration);
  CHECK(job.dir.has("work/checkpoints/ldm_step-20/checkpoint.json"));
}
