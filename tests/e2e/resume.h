#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "e2e/probe.h"
#include "e2e/run.h"

/// Runs that stop and go on, and what must not differ from one that did not.

namespace e2e {

/// Everything that a resumed run could get wrong: 66 images that are augmented, in 10 batches of 7, the last one short;
/// windows of 3, the last one short; two loader threads; batch normalisation; dropout, also in evaluations; a schedule
/// that counts steps and one that warms up; momentum; hooks with state, two of them of one name.
inline constexpr char kJob[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 6
  TRAIN_DATA:
    NAME: Synthetic
    SIZE: 66
    SHAPE: [1, 8, 8]
    NUM_CLASSES: 3
    BATCH_SIZE: 7
    NUM_WORKERS: 2
    TRANSFORMS: [{NAME: RandomCrop, SIZE: 8, PADDING: 1}, {NAME: RandomHorizontalFlip}]
  EVAL_DATA: {NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, NUM_WORKERS: 1}
  MODEL:
    NAME: Classifier
    NUM_CLASSES: 3
    BACKBONE: {NAME: test/DropoutConvNet}
  OPTIMIZER: {NAME: SGD, LEARNING_RATE: 0.1, MOMENTUM: 0.9}
  LR_SCHEDULER: {NAME: CosineAnnealingLR, T_MAX: 24, UNIT: step}
  METRICS: [{NAME: AccuracyMetric}]
  HOOKS:
    - {NAME: CheckpointHook, SAVE_LAST: true, SAVE_BEST_BY: -loss}
    - {NAME: test/LossTrace, FILE: losses.txt}
    - {NAME: test/Counter, FILE: counts.txt}
    - {NAME: test/Counter, FILE: counts-2.txt, STEP: 2}
    - {NAME: test/Trace, FILE: trace.txt}
    - {NAME: test/RaiseSignal, SIGNAL: TERM}
  TRAIN_HOOKS: [{NAME: BackwardHook, ACCUMULATE_STEP: 3}, {NAME: LrHook, WARMUP_EPOCHS: 1}]
)";

/// A folder with a job in it, which processes run one after the other.
struct Job {
  TempDir dir;

  explicit Job(const std::string& config = kJob) { dir.write("job.yaml", config); }

  RunResult run(const std::vector<std::string>& changes = {}, int expected_exit = 0,
                const RunOptions& options = {}) const;
  /// With RESUME_FROM=auto.
  RunResult resume(std::vector<std::string> changes = {}, int expected_exit = 0) const;
  std::vector<std::string> command(const std::vector<std::string>& changes) const;

  /// The bits of the loss of each training iteration. What was trained twice must have had the same loss.
  std::map<int64_t, std::string> losses() const;
  std::vector<std::string> lines(const std::string& file) const { return lines_of(dir.read(file)); }

  std::string work(const std::string& name) const { return dir.path("work/" + name); }
  std::string checkpoint(int64_t iteration) const { return work("checkpoints/ldm_step-" + std::to_string(iteration)); }
  /// What stands in a folder, sorted; nothing when there is none.
  std::vector<std::string> names(const std::string& folder = "work/checkpoints") const;
  /// Where a link leads.
  std::string link(const std::string& name) const;
};

inline std::string at_iteration(int64_t iteration) {
  return "SOLVER.HOOKS[test/RaiseSignal].AT_ITERATION=" + std::to_string(iteration);
}
/// Three changes: the point, the epoch, the iteration within the phase.
std::vector<std::string> at_point(const std::string& point, int64_t epoch, int64_t iter = 0);

/// Three files of a checkpoint, byte by byte. Empty when they are equal, else what differs.
std::string checkpoint_difference(const std::string& a, const std::string& b);
/// Both have the same last and best checkpoint, every checkpoint that both have is the same in all bytes, and every
/// loss is.
void check_same_training(const Job& undisturbed, const Job& other);
/// And hooks were called at the same points as often, with the same losses.
void check_same_counts(const Job& undisturbed, const Job& other);

}  // namespace e2e
