#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/resume.h"

// Runs that MAX_STEPS limits, folds of the data, and evaluations in the middle of an epoch.

namespace {

using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;
using e2e::Training;

using Lines = std::vector<std::string>;

std::string trace_of(const std::string& points) {
  return "SOLVER.HOOKS=[{NAME: test/Trace, FILE: trace.txt, ONLY: [" + points + "]}]";
}

/// MAX_STEPS in place of MAX_EPOCHS.
Lines steps(int64_t count) { return {"SOLVER.MAX_EPOCHS=null", "SOLVER.MAX_STEPS=" + std::to_string(count)}; }

Lines operator+(Lines a, const Lines& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The iterations after which there was an evaluation.
Lines evaluated_after(const Training& run) {
  Lines all;
  for (const std::string& line : run.lines("trace.txt")) {
    if (!line.starts_with("evaluated ")) continue;
    const std::size_t slash = line.find('/');
    const std::size_t begin = line.find(' ', slash) + 1;
    all.push_back(line.substr(begin, line.find(' ', begin) - begin));
  }
  return all;
}

}  // namespace

TEST_CASE("MAX_STEPS makes as many iterations over as many passes as that takes and cuts the last") {
  const Training run(steps(23) + Lines{trace_of("before_epoch, after_epoch")});
  CHECK(run.lines("trace.txt") == Lines{"before_epoch train+ 1 0/10 0", "after_epoch train+ 1 10/10 10",
                                        "before_epoch train+ 2 0/10 10", "after_epoch train+ 2 10/10 20",
                                        "before_epoch train+ 3 0/3 20", "after_epoch train+ 3 3/3 23"});
  CHECK(run.number({"iteration"}) == 23);
}

TEST_CASE("each pass of a step loop has an order of its own and the weights of an epoch loop") {
  const Training by_steps(steps(20) + Lines{e2e::kDigest}), by_epochs({"SOLVER.MAX_EPOCHS=2", e2e::kDigest});
  CHECK(by_steps.digests().size() == 20);
  CHECK(by_steps.digests() == by_epochs.digests());
}

TEST_CASE("MAX_STEPS of less than a pass over the data ends within it") {
  const Training run(steps(4) + Lines{trace_of("after_epoch, after_solve")});
  CHECK(run.lines("trace.txt") == Lines{"after_epoch train+ 1 4/4 4", "after_solve train+ 1 0/0 4"});
}

TEST_CASE("a bare EVAL_INTERVAL counts iterations in a step loop and the end has an evaluation too") {
  const Training run(steps(13) + Lines{e2e::kEvalData, "SOLVER.EVAL_INTERVAL=4", trace_of("evaluated")});
  CHECK(evaluated_after(run) == Lines{"4", "8", "12", "13"});
}

TEST_CASE("without EVAL_INTERVAL a step loop evaluates after each pass and at the end") {
  const Training run(steps(23) + Lines{e2e::kEvalData, trace_of("evaluated")});
  CHECK(evaluated_after(run) == Lines{"10", "20", "23"});
}

TEST_CASE("an evaluation at the end of a pass is one evaluation") {
  const Training run(steps(20) + Lines{e2e::kEvalData, "SOLVER.EVAL_INTERVAL=5", trace_of("evaluated")});
  CHECK(evaluated_after(run) == Lines{"5", "10", "15", "20"});
}

TEST_CASE("an epoch loop evaluates every so many iterations where EVAL_INTERVAL says so") {
  const Training run({e2e::kEvalData, "SOLVER.EVAL_INTERVAL=7 iters", trace_of("evaluated")});
  CHECK(evaluated_after(run) == Lines{"7", "14", "20"});
}

TEST_CASE("an evaluation waits for the end of the window") {
  const Training run(steps(14) + Lines{e2e::kEvalData, "SOLVER.EVAL_INTERVAL=4", trace_of("evaluated"),
                                       "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=3"});
  // Windows end after 3, 6, 9 and 10 (the pass) iterations, then after 13 and 14.
  CHECK(evaluated_after(run) == Lines{"6", "9", "13", "14"});
}

TEST_CASE("an interval in optimizer steps counts windows") {
  const Training run({e2e::kEvalData, "SOLVER.MAX_EPOCHS=1", "SOLVER.EVAL_INTERVAL=2 steps", trace_of("evaluated"),
                      "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=3"});
  CHECK(evaluated_after(run) == Lines{"6", "10"});
}

TEST_CASE("evaluations in the middle of an epoch change no weight") {
  const Training with(steps(15) + Lines{e2e::kEvalData, "SOLVER.EVAL_INTERVAL=2", e2e::kDigest});
  const Training without(steps(15) + Lines{e2e::kDigest});
  CHECK(with.digests().size() == 15);
  CHECK(with.digests() == without.digests());
}

TEST_CASE("a schedule in a step loop ends with the run") {
  const Lines schedule = {"SOLVER.LR_SCHEDULER={NAME: StepAnnealingLR, WARMUP_STEPS: 0, DECAY_MODE: linear}"};
  const Training run(steps(12) + schedule + Lines{trace_of("before_step")});
  const Lines lines = run.lines("trace.txt");
  REQUIRE(lines.size() == 12);
  CHECK(lines[6].ends_with("lr=0.05"));
}

TEST_CASE("NUM_FOLDS makes epochs of equal length but for the last of a pass") {
  // Two folds of 66 images are 132 in 19 batches of 7: an epoch of 10 and one of 9.
  const Training run({"SOLVER.NUM_FOLDS=2", "SOLVER.MAX_EPOCHS=3", trace_of("after_epoch")});
  CHECK(run.lines("trace.txt") ==
        Lines{"after_epoch train+ 1 10/10 10", "after_epoch train+ 2 9/9 19", "after_epoch train+ 3 10/10 29"});
}

TEST_CASE("MAX_EPOCHS counts the epochs that are trained") {
  // 1 batch a pass, and 2 and 10: as many epochs as asked for, whatever the length.
  for (const char* size : {"5", "14", "66"}) {
    const Training run({"SOLVER.MAX_EPOCHS=7", std::string("SOLVER.TRAIN_DATA.SIZE=") + size, trace_of("after_epoch")});
    CHECK(run.lines("trace.txt").size() == 7);
    CHECK(run.number({"epoch"}) == 7);
  }
}

TEST_CASE("NUM_FOLDS shows every sample once in each fold and in another order") {
  const Training run(
      {"SOLVER.NUM_FOLDS=2", "SOLVER.MAX_EPOCHS=2", "SOLVER.HOOKS=[{NAME: test/IdTrace, FILE: ids.txt}]"});
  std::vector<int64_t> ids;
  for (const std::string& line : run.lines("ids.txt")) {
    std::istringstream in(line);
    int64_t epoch = 0, iteration = 0;
    in >> epoch >> iteration;
    for (int64_t id; in >> id;) ids.push_back(id);
  }
  REQUIRE(ids.size() == 2 * 66);
  std::vector<int64_t> first(ids.begin(), ids.begin() + 66), second(ids.begin() + 66, ids.end());
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  std::vector<int64_t> all(66);
  std::iota(all.begin(), all.end(), 0);
  CHECK(first == all);
  CHECK(second == all);
}

TEST_CASE("more folds than a pass has batches are refused") {
  const Training run({"SOLVER.NUM_FOLDS=4", "SOLVER.TRAIN_DATA.SIZE=7", "SOLVER.TRAIN_DATA.BATCH_SIZE=28"}, 2);
  CHECK(run.result.err.find("NUM_FOLDS is 4") != std::string::npos);
}

TEST_CASE("MAX_STEPS and MAX_EPOCHS together are refused with both values") {
  const Training run({"SOLVER.MAX_STEPS=5"}, 2);
  CHECK(run.result.err.find("MAX_STEPS is 5 and MAX_EPOCHS 2") != std::string::npos);
}

TEST_CASE("a step loop stopped within evaluations and passes goes on to the same bytes") {
  const Lines loop =
      steps(47) + Lines{"SOLVER.EVAL_INTERVAL=8", "SOLVER.HOOKS[CheckpointHook].INTERVAL=9"};  // not at a stop below
  Job undisturbed, stopped;
  undisturbed.run(loop);
  stopped.run(loop + Lines{at_iteration(13)}, 75);
  stopped.resume(loop + at_point("eval.after_iter", 2, 1), 75);  // in the interim evaluation after 16
  stopped.resume(loop + at_point("train.after_epoch", 3), 75);
  stopped.resume(loop + Lines{at_iteration(39)}, 75);
  stopped.resume(loop);
  REQUIRE(undisturbed.losses().size() == 47);
  CHECK(undisturbed.link("last") == "ldm_step-47");
  e2e::check_same_training(undisturbed, stopped);
  e2e::check_same_counts(undisturbed, stopped);
}

TEST_CASE("a run with folds stopped within a fold goes on to the same bytes") {
  const Lines folds = {"SOLVER.NUM_FOLDS=3", "SOLVER.MAX_EPOCHS=5"};
  Job undisturbed, stopped;
  undisturbed.run(folds);
  stopped.run(folds + Lines{at_iteration(14)}, 75);
  stopped.resume(folds + Lines{at_iteration(25)}, 75);
  stopped.resume(folds);
  e2e::check_same_training(undisturbed, stopped);
  e2e::check_same_counts(undisturbed, stopped);
}

TEST_CASE("a finished step loop goes on where MAX_STEPS is raised") {
  Job job;
  job.run(steps(20));
  const e2e::RunResult again = job.resume(steps(20));
  CHECK(again.err.find("all 20 iterations are trained already") != std::string::npos);
  job.resume(steps(30));
  CHECK(job.losses().size() == 30);
}
