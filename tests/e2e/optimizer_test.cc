#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/probe.h"

// SGD against PyTorch's, and the learning rates of a run.

namespace {

using e2e::Training;

const std::string kPython = GANTRY_SOURCE_DIR "/.venv/bin/python";

/// The learning rate of each optimizer step.
std::vector<double> rates(const Training& run) {
  std::vector<double> result;
  for (const std::string& line : run.lines("trace.txt")) result.push_back(std::stod(line.substr(line.find("lr=") + 3)));
  return result;
}

void check_rates_are(const Training& run, const std::vector<double>& expected) {
  const std::vector<double> found = rates(run);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
}

void check_rates(const Training& run, const std::vector<int>& powers) {
  std::vector<double> expected;
  for (const int power : powers) expected.push_back(0.1 * std::pow(0.1, power));
  check_rates_are(run, expected);
}

const std::string kRates = "SOLVER.HOOKS=[{NAME: test/Trace, FILE: trace.txt, ONLY: [before_step]}]";

}  // namespace

TEST_CASE("SGD takes the steps of PyTorch's") {
  if (!std::filesystem::exists(kPython)) {
    MESSAGE("skipped: there is no " << kPython);
    return;
  }
  const e2e::TempDir dir;
  const e2e::RunResult torch = e2e::run_program({kPython, GANTRY_SOURCE_DIR "/tests/e2e/torch_sgd.py"}, dir.path());
  INFO(torch.describe());
  REQUIRE(torch.exit_code == 0);

  // As torch_sgd.py has them.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"plain", ""},
      {"momentum", ", MOMENTUM: 0.9"},
      {"damped", ", MOMENTUM: 0.9, DAMPENING: 0.3, WEIGHT_DECAY: 0.05"},
      {"nesterov", ", MOMENTUM: 0.9, NESTEROV: true, WEIGHT_DECAY: 0.05"},
  };
  std::vector<std::vector<std::vector<double>>> all;
  for (const auto& [name, options] : cases) {
    CAPTURE(name);
    const Training run(
        {"SOLVER.TRAIN_DATA={NAME: test/Points, SIZE: 20, BATCH_SIZE: 6, SHUFFLE: false, NUM_WORKERS: 0}",
         "SOLVER.MODEL={NAME: test/Regression}", "SOLVER.METRICS=[]", e2e::kValues,
         "SOLVER.OPTIMIZER={NAME: SGD, LEARNING_RATE: 0.1" + options + "}"});
    std::vector<std::string> expected;
    for (const std::string& line : e2e::lines_of(torch.out))
      if (line.starts_with(name + " ")) expected.push_back(line);
    REQUIRE(expected.size() == 8);
    const auto found = e2e::values_of(run.digests());
    REQUIRE(found.size() == 8);
    REQUIRE(found[0].size() == 5);
    CHECK(e2e::largest_difference(found, e2e::values_of(expected)) < 1e-12);
    for (const auto& other : all) CHECK(e2e::largest_difference(found, other) > 1e-3);
    all.push_back(found);
  }
}

TEST_CASE("StepLR counts epochs unless told otherwise") {
  const Training run({kRates, "SOLVER.MAX_EPOCHS=5", "SOLVER.LIMIT_TRAIN_BATCHES=2",
                      "SOLVER.LR_SCHEDULER={NAME: StepLR, STEP_SIZE: 2, GAMMA: 0.1}"});
  check_rates(run, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2});
}

TEST_CASE("StepLR by step counts optimizer steps and not iterations") {
  const Training run({kRates, "SOLVER.MAX_EPOCHS=2", "SOLVER.LIMIT_TRAIN_BATCHES=5",
                      "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=2",
                      "SOLVER.LR_SCHEDULER={NAME: StepLR, STEP_SIZE: 2, GAMMA: 0.1, UNIT: step}"});
  check_rates(run, {0, 0, 1, 1, 2, 2});
}

TEST_CASE("MultiStepLR counts epochs and StepAnnealingLR ends with the run") {
  const Training steps({kRates, "SOLVER.MAX_EPOCHS=4", "SOLVER.LIMIT_TRAIN_BATCHES=2",
                        "SOLVER.LR_SCHEDULER={NAME: MultiStepLR, MILESTONES: [1, 3], GAMMA: 0.1}"});
  check_rates(steps, {0, 0, 1, 1, 1, 1, 2, 2});
  const Training annealed({kRates, "SOLVER.MAX_EPOCHS=2", "SOLVER.LIMIT_TRAIN_BATCHES=5",
                           "SOLVER.LR_SCHEDULER={NAME: StepAnnealingLR, WARMUP_STEPS: 2, DECAY_MODE: linear}"});
  check_rates_are(annealed, {0.05, 0.1, 0.1, 0.0875, 0.075, 0.0625, 0.05, 0.0375, 0.025, 0.0125});
}

TEST_CASE("LrHook warms up by whole epochs towards what the schedule gives") {
  const Training run(
      {kRates, "SOLVER.MAX_EPOCHS=4", "SOLVER.LIMIT_TRAIN_BATCHES=2",
       "SOLVER.LR_SCHEDULER={NAME: StepLR, STEP_SIZE: 1, GAMMA: 0.5}",
       "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, {NAME: LrHook, WARMUP_EPOCHS: 2, WARMUP_START_LR: 0.01}]"});
  check_rates_are(run, {0.01, 0.01, 0.03, 0.03, 0.025, 0.025, 0.0125, 0.0125});
}

TEST_CASE("LrHook by step warms up within epochs and so moves a schedule that counts epochs") {
  const std::string hook =
      "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, {NAME: LrHook, SET_BY_EPOCH: false, WARMUP_START_LR: 0.02, ";
  const Training run({kRates, "SOLVER.MAX_EPOCHS=2", "SOLVER.LIMIT_TRAIN_BATCHES=4", hook + "WARMUP_EPOCHS: 1}]"});
  check_rates_are(run, {0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.1, 0.1});
  const Training cosine({kRates, "SOLVER.MAX_EPOCHS=2", "SOLVER.LIMIT_TRAIN_BATCHES=2",
                         "SOLVER.LR_SCHEDULER={NAME: CosineAnnealingLR, T_MAX: 2}", hook + "WARMUP_FUNC: none}]"});
  check_rates_are(cosine, {0.1, 0.05 + 0.05 * std::sqrt(0.5), 0.05, 0.05 - 0.05 * std::sqrt(0.5)});
}

TEST_CASE("LrHook warns of a warm-up that begins above the rate itself") {
  const Training run(
      {"SOLVER.MAX_EPOCHS=1", "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, {NAME: LrHook, WARMUP_START_LR: 0.5}]"});
  CHECK(run.result.err.find("WARMUP_START_LR is 0.5, the group's own rate 0.1") != std::string::npos);
  const Training quiet(
      {"SOLVER.MAX_EPOCHS=1", "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, {NAME: LrHook, WARMUP_START_LR: 0.1}]"});
  CHECK(quiet.result.err.find("WARMUP_START_LR") == std::string::npos);
}
