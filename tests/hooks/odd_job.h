#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/probe.h"
#include "e2e/resume.h"
#include "gantry/safetensors.h"

/// Runs of a model whose tensors are hard to store, and what they leave behind.

namespace e2e {

/// 7 iterations to an epoch, the last batch short; an evaluation after each.
inline constexpr char kOddJob[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 2
  TRAIN_DATA: {NAME: test/Points, SIZE: 20, BATCH_SIZE: 3, NUM_WORKERS: 0}
  EVAL_DATA: {NAME: test/Points, SIZE: 6, BATCH_SIZE: 4, NUM_WORKERS: 0}
  MODEL: {NAME: test/OddTensors}
  OPTIMIZER: {NAME: SGD, LEARNING_RATE: 0.05, MOMENTUM: 0.5}
  TRAIN_HOOKS: [{NAME: BackwardHook}]
  HOOKS:
    - {NAME: CheckpointHook, SAVE_LAST: true}
    - {NAME: test/LossTrace, FILE: losses.txt}
    - {NAME: test/WeightsDigest, FILE: digest.txt, VALUES: true}
    - {NAME: test/RaiseSignal, SIGNAL: TERM}
)";

inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The job with one more hook: `text` as in YAML.
inline std::string with_hook(const std::string& text) {
  return "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, " + text + "]";
}

inline gantry::SafetensorsFile open_file(const std::string& path) { return gantry::SafetensorsFile::open(path); }

inline std::string metadata(const gantry::SafetensorsFile& file, const std::string& key) {
  for (const auto& [name, value] : file.metadata())
    if (name == key) return value;
  return "none";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace e2e
