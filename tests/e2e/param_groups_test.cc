#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "e2e/probe.h"

// OPTIMIZER.PARAM_GROUPS: parameters with a learning rate and a weight decay of their own.

namespace {

using e2e::Training;

using Values = std::array<double, 5>;  // four weights and the bias of test/Regression

/// Gradient descent on test/Points in batches of 6, as a textbook has it: each number with its own rate and decay.
std::vector<std::vector<double>> textbook_descent(const Values& rates, const Values& decays, int epochs) {
  Values p = {-0.25, -0.15, -0.05, 0.05, 0.5};
  std::vector<std::vector<double>> steps;
  for (int batch = 0; batch < 4 * epochs; ++batch) {
    const int begin = batch % 4 * 6, end = std::min(begin + 6, 20);
    Values gradient = {};
    for (int i = begin; i < end; ++i) {
      Values x = {0, 0, 0, 0, 1};
      for (int j = 0; j < 4; ++j) x[j] = (7 * i + 13 * j) % 17 / 8.0 - 1;
      double error = 1 - 5 * i % 11 / 5.0;
      for (int j = 0; j < 5; ++j) error += p[j] * x[j];
      for (int j = 0; j < 5; ++j) gradient[j] += 2 * error * x[j] / (end - begin);
    }
    for (int j = 0; j < 5; ++j) p[j] -= rates[j] * (gradient[j] + decays[j] * p[j]);
    steps.emplace_back(p.begin(), p.end());
  }
  return steps;
}

std::vector<std::string> regression(const std::string& groups) {
  return {"SOLVER.TRAIN_DATA={NAME: test/Points, SIZE: 20, BATCH_SIZE: 6, SHUFFLE: false, NUM_WORKERS: 0}",
          "SOLVER.MODEL={NAME: test/Regression}", "SOLVER.METRICS=[]", e2e::kValues,
          "SOLVER.OPTIMIZER={NAME: SGD, LEARNING_RATE: 0.1, WEIGHT_DECAY: 0.3, PARAM_GROUPS: " + groups + "}"};
}

/// What follows `name` in the log, at every place.
std::vector<double> logged(const Training& run, const std::string& name) {
  std::vector<double> values;
  const std::string &text = run.result.err, key = name + " ";
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
    values.push_back(std::stod(text.substr(at + key.size())));
  return values;
}

void check_logged(const Training& run, const std::string& name, const std::vector<double>& expected) {
  const std::vector<double> found = logged(run, name);
  INFO(run.result.err);
  REQUIRE(found.size() >= expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-3));
  }
}

const char kJob[] = R"(ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 1
  TRAIN_DATA: {NAME: Synthetic, SIZE: 16, SHAPE: [1, 4, 4], NUM_CLASSES: 3, BATCH_SIZE: 4, NUM_WORKERS: 0}
  MODEL:
    NAME: Classifier
    NUM_CLASSES: 3
    BACKBONE: {NAME: Mlp, INPUT_SIZE: 16, HIDDEN: [8]}
  OPTIMIZER:
    NAME: SGD
    LEARNING_RATE: 0.1
    PARAM_GROUPS:
      - MATCH: bias$
        WEIGHT_DECAY: 0
      - MATCH: [^head, norm]
        LEARNING_RATE: 0.01
  TRAIN_HOOKS: [{NAME: BackwardHook}]
)";

/// The job with one thing wrong in the line that holds `part`: exit 2 with that place, before anything is written.
void refused(const std::string& from, const std::string& to, const std::string& part,
             const std::vector<std::string>& messages) {
  const e2e::TempDir dir;
  const std::string text = e2e::replaced(kJob, from, to);
  dir.write("c.yaml", text);
  const e2e::RunResult result = e2e::run_gantry({"run", "c.yaml"}, dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("c.yaml:" + std::to_string(e2e::line_of(text, part))) != std::string::npos);
  for (const std::string& message : messages) {
    INFO(message);
    CHECK(result.err.find(message) != std::string::npos);
  }
  CHECK_FALSE(dir.has("work"));
}

}  // namespace

TEST_CASE("a group of parameters has its own learning rate and weight decay and the others the optimizer's") {
  const Training plain(regression("[]"));
  const Training groups(regression("[{MATCH: bias$, LEARNING_RATE: 0.02, WEIGHT_DECAY: 0}]"));
  const Training rate(regression("[{MATCH: [bias], LEARNING_RATE: 0.02}]"));
  const auto values = [](const Training& run) { return e2e::values_of(run.digests()); };
  REQUIRE(values(groups).size() == 8);
  const Values all_decay = {0.3, 0.3, 0.3, 0.3, 0.3}, some_decay = {0.3, 0.3, 0.3, 0.3, 0};
  const Values same = {0.1, 0.1, 0.1, 0.1, 0.1}, own = {0.1, 0.1, 0.1, 0.1, 0.02};
  CHECK(e2e::largest_difference(values(plain), textbook_descent(same, all_decay, 2)) < 1e-12);
  CHECK(e2e::largest_difference(values(groups), textbook_descent(own, some_decay, 2)) < 1e-12);
  CHECK(e2e::largest_difference(values(rate), textbook_descent(own, all_decay, 2)) < 1e-12);
  CHECK(e2e::largest_difference(values(groups), values(rate)) > 1e-3);
  CHECK(e2e::largest_difference(values(plain), values(rate)) > 1e-3);
}

TEST_CASE("a parameter belongs to the first group that has a pattern in its name") {
  const std::string own = "{MATCH: bias, LEARNING_RATE: 0.02}", all = "{MATCH: [weight, '^.ias'], WEIGHT_DECAY: 0}";
  const Training run(regression("[" + own + ", " + all + "]"));
  const std::vector<std::vector<double>> expected = textbook_descent({0.1, 0.1, 0.1, 0.1, 0.02}, {0, 0, 0, 0, 0.3}, 2);
  CHECK(e2e::largest_difference(e2e::values_of(run.digests()), expected) < 1e-12);
}

TEST_CASE("the log shows the rate of each group and a schedule moves each from its own") {
  std::vector<std::string> changes = regression("[{MATCH: bias$, LEARNING_RATE: 0.02}]");
  changes.push_back("SOLVER.LR_SCHEDULER={NAME: StepLR, STEP_SIZE: 1, GAMMA: 0.5}");
  changes.push_back("SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, {NAME: LogHook, LOG_INTERVAL: 4}]");
  const Training run(changes);
  check_logged(run, "pg0_lr", {0.1, 0.05});
  check_logged(run, "pg1_lr", {0.02, 0.01});
}

TEST_CASE("a warm-up leads each group to its own rate") {
  std::vector<std::string> changes = regression("[{MATCH: bias$, LEARNING_RATE: 0.02}]");
  changes.push_back(
      "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, {NAME: LogHook, LOG_INTERVAL: 4}, {NAME: LrHook, WARMUP_EPOCHS: 2, "
      "WARMUP_START_LR: 0.01}]");
  changes.push_back("SOLVER.MAX_EPOCHS=3");
  const Training run(changes);
  check_logged(run, "pg0_lr", {0.01, 0.055, 0.1});
  check_logged(run, "pg1_lr", {0.01, 0.015, 0.02});
}

TEST_CASE("a pattern of PARAM_GROUPS that no parameter has is refused with its place and the names there are") {
  refused("bias$", "bais$", "bais$", {"no parameter", "'bais$'", "head.bias"});
  refused("[^head, norm]", "head.bias", "head.bias", {"no parameter", "'head.bias'"});  // the first group has it
}

TEST_CASE("a pattern of PARAM_GROUPS that is no regular expression is refused with its place") {
  refused("bias$", "'bias('", "'bias('", {"MATCH", "bias("});
}

TEST_CASE("wrong keys of PARAM_GROUPS are refused with their place") {
  refused("WEIGHT_DECAY: 0", "WIEGHT_DECAY: 0", "WIEGHT_DECAY", {"WIEGHT_DECAY", "WEIGHT_DECAY"});
  refused("WEIGHT_DECAY: 0", "WEIGHT_DECAY: -1", "WEIGHT_DECAY: -1", {"WEIGHT_DECAY", "-1"});
  refused("MATCH: bias$\n        WEIGHT_DECAY: 0", "WEIGHT_DECAY: 0", "WEIGHT_DECAY: 0", {"MATCH"});
  refused("MATCH: bias$", "MATCH: []", "MATCH: []", {"MATCH"});
  refused("NAME: SGD", "NAME: Rprop", "WEIGHT_DECAY: 0", {"WEIGHT_DECAY", "Rprop"});
}
