#include <cmath>
#include <cstdlib>
#include <set>

#include "regress/trials.h"

// Schedules that stood elsewhere after a resume: a step behind, a step ahead, or at their beginning.

namespace {

using namespace trials;
using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;

/// Windows of 3 in epochs of 10: four steps each.
const Changes kThreeEpochs = {"SOLVER.MAX_EPOCHS=3", traced("before_step")};

std::vector<double> rates(const Job& job) {
  std::vector<double> all;
  for (const std::string& line : job.lines("trace.txt"))
    all.push_back(std::strtod(line.c_str() + line.find("lr=") + 3, nullptr));
  return all;
}

}  // namespace

TEST_CASE("the learning rate of every step of a run that was stopped is that of an undisturbed one") {
  const std::string no_warm_up = "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, ACCUMULATE_STEP: 3}]";
  const std::vector<Changes> schedules = {
      {"SOLVER.LR_SCHEDULER={NAME: StepLR, STEP_SIZE: 2, GAMMA: 0.7, UNIT: step}", no_warm_up},
      {"SOLVER.LR_SCHEDULER={NAME: StepLR, STEP_SIZE: 1, GAMMA: 0.5}", no_warm_up},
      {"SOLVER.LR_SCHEDULER={NAME: MultiStepLR, MILESTONES: [2, 5, 6, 9], UNIT: step}", no_warm_up},
      {"SOLVER.LR_SCHEDULER={NAME: CosineAnnealingLR, T_MAX: 12, UNIT: step}", no_warm_up},
      {"SOLVER.LR_SCHEDULER={NAME: ExponentialLR, GAMMA: 0.9, UNIT: step}", no_warm_up},
      {"SOLVER.LR_SCHEDULER={NAME: StepAnnealingLR, WARMUP_STEPS: 4}", no_warm_up},
      {"SOLVER.LR_SCHEDULER={NAME: WarmupToConstantLR, WARMUP_STEPS: 9}", no_warm_up},
      {"SOLVER.LR_SCHEDULER={NAME: CyclicLR, MAX_LR: 0.3, STEP_SIZE_UP: 3}", no_warm_up},
      {"SOLVER.LR_SCHEDULER={NAME: CosineAnnealingLR, T_MAX: 12, UNIT: step}",
       "SOLVER.TRAIN_HOOKS[LrHook].WARMUP_EPOCHS=2"},
      {"SOLVER.LR_SCHEDULER={NAME: CosineAnnealingLR, T_MAX: 3}", "SOLVER.TRAIN_HOOKS[LrHook].SET_BY_EPOCH=false"},
  };
  for (const Changes& schedule : schedules) {
    INFO(schedule[0] << ", " << schedule[1]);
    const Changes changes = kThreeEpochs + schedule;
    Job undisturbed, stopped;
    undisturbed.run(changes);
    run_with_stops(stopped, changes, {{at_iteration(4)}, at_point("eval.evaluated", 2), {at_iteration(26)}});
    REQUIRE(rates(undisturbed).size() == 12);
    const std::vector<double> all = rates(undisturbed);
    CHECK(std::set<double>(all.begin(), all.end()).size() >= 3);  // a constant rate would prove nothing
    CHECK(stopped.lines("trace.txt") == undisturbed.lines("trace.txt"));
    e2e::check_same_training(undisturbed, stopped);
  }
}

TEST_CASE("a schedule stands at the number of optimizer steps however often a run was stopped") {
  const Changes changes =
      kThreeEpochs + Changes{"SOLVER.LR_SCHEDULER={NAME: StepLR, STEP_SIZE: 1, GAMMA: 0.5, UNIT: step}",
                             "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, ACCUMULATE_STEP: 3}]"};
  const Job job;
  std::vector<Changes> stops;
  for (int64_t iteration = 0; iteration < 29; iteration += 4) stops.push_back({at_iteration(iteration)});
  run_with_stops(job, changes, stops);
  std::vector<double> expected;
  for (int step = 0; step < 12; ++step) expected.push_back(0.1 * std::pow(0.5, step));
  CHECK(rates(job) == expected);
}
