#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/probe.h"

// SGD and StepLR against PyTorch's.

namespace {

using e2e::Training;

const std::string kPython = GANTRY_SOURCE_DIR "/.venv/bin/python";

/// The learning rate of each optimizer step.
std::vector<double> rates(const Training& run) {
  std::vector<double> result;
  for (const std::string& line : run.lines("trace.txt")) result.push_back(std::stod(line.substr(line.find("lr=") + 3)));
  return result;
}

void check_rates(const Training& run, const std::vector<int>& powers) {
  const std::vector<double> found = rates(run);
  REQUIRE(found.size() == powers.size());
  for (std::size_t i = 0; i < powers.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i] == doctest::Approx(0.1 * std::pow(0.1, powers[i])).epsilon(1e-12));
  }
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
