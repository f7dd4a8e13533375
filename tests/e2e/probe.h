#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/run.h"

/// Small training runs with the hooks of tests/fixtures/probe, and what those wrote down.

namespace e2e {

/// 66 images: 10 batches of 7, the last one short. Every run in here is this one with something changed.
inline constexpr char kSmallJob[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 2
  TRAIN_DATA: {NAME: Synthetic, SIZE: 66, SHAPE: [1, 4, 4], NUM_CLASSES: 3, BATCH_SIZE: 7, NUM_WORKERS: 0}
  MODEL:
    NAME: Classifier
    NUM_CLASSES: 3
    BACKBONE: {NAME: test/DropoutMlp, INPUT_SIZE: 16}
  OPTIMIZER: {NAME: SGD, LEARNING_RATE: 0.1, MOMENTUM: 0.9}
  METRICS: [{NAME: AccuracyMetric}]
  TRAIN_HOOKS: [{NAME: BackwardHook}]
)";
inline const std::string kEvalData =
    "SOLVER.EVAL_DATA={NAME: Synthetic, SIZE: 12, SHAPE: [1, 4, 4], NUM_CLASSES: 3, BATCH_SIZE: 12, NUM_WORKERS: 0}";
inline const std::string kTestData =
    "SOLVER.TEST_DATA={NAME: Synthetic, SIZE: 12, SHAPE: [1, 4, 4], NUM_CLASSES: 3, BATCH_SIZE: 12, NUM_WORKERS: 0}";
inline const std::string kDigest = "SOLVER.HOOKS=[{NAME: test/WeightsDigest, FILE: digest.txt}]";
inline const std::string kValues = "SOLVER.HOOKS=[{NAME: test/WeightsDigest, FILE: digest.txt, VALUES: true}]";

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// One run of `config` in a folder of its own.
struct Training {
  TempDir dir;
  RunResult result;

  explicit Training(const std::vector<std::string>& changes, int expected_exit = 0,
                    const std::string& config = "small.yaml", const std::vector<std::string>& flags = {},
                    const RunOptions& options = {}) {
    dir.write("small.yaml", kSmallJob);
    std::vector<std::string> arguments{"run", config, "--json", "--plugin-dir", GANTRY_PROBE_DIR};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.insert(arguments.end(), changes.begin(), changes.end());
    result = run_gantry(arguments, dir.path(), options);
    INFO(result.describe());
    REQUIRE(result.exit_code == expected_exit);
  }

  std::vector<std::string> lines(const std::string& file) const { return lines_of(dir.read(file)); }
  /// "<step> <digest>" of each optimizer step.
  std::vector<std::string> digests() const { return lines("digest.txt"); }
  double number(const std::vector<std::string>& path) const { return json_number(result.last_line(), path); }
};

/// The parameters after each step, as WeightsDigest writes them with VALUES.
inline std::vector<std::vector<double>> values_of(const std::vector<std::string>& lines) {
  std::vector<std::vector<double>> all;
  for (const std::string& line : lines) {
    std::istringstream in(line);
    std::string step, digest;
    in >> step >> digest;
    std::vector<double> values;
    for (double value; in >> value;) values.push_back(value);
    all.push_back(std::move(values));
  }
  return all;
}

/// The largest difference of two lists of steps; infinite where they do not have the same shape.
inline double largest_difference(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return HUGE_VAL;
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      const double difference = std::abs(a[i][j] - b[i][j]);
      if (!(difference <= largest)) largest = difference;  // also when it is NaN
    }
  }
  return largest;
}

}  // namespace e2e
