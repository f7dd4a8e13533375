#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "e2e/run.h"

// What a run leaves behind, opened by PyTorch: the checkpoint's weights in the same module tree give the same logits.

namespace {

constexpr char kJob[] = R"(
ENV: {SEED: 3, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 1
  TRAIN_DATA: {NAME: Synthetic, SIZE: 48, SHAPE: [1, 16, 16], NUM_CLASSES: 5, BATCH_SIZE: 8, NUM_WORKERS: 0}
  EVAL_DATA: {NAME: Synthetic, SIZE: 16, SHAPE: [1, 16, 16], NUM_CLASSES: 5, BATCH_SIZE: 16, NUM_WORKERS: 0}
  MODEL: {NAME: Classifier, NUM_CLASSES: 5, BACKBONE: BACKBONE_HERE}
  OPTIMIZER: {NAME: AdamW, LEARNING_RATE: 0.003}
  TRAIN_HOOKS: [{NAME: BackwardHook}]
  HOOKS: [{NAME: CheckpointHook}, {NAME: test/SaveOutputs, FILE: outputs.safetensors}]
)";

void check_logits(const std::string& backbone, const std::string& kind) {
  const std::string python = GANTRY_SOURCE_DIR "/.venv/bin/python";
  if (!std::filesystem::exists(python)) {
    MESSAGE("skipped: there is no " << python);
    return;
  }
  const e2e::TempDir dir;
  dir.write("job.yaml", e2e::replaced(kJob, "BACKBONE_HERE", backbone));
  const e2e::RunResult run = e2e::run_gantry({"run", "job.yaml", "--plugin-dir", GANTRY_PROBE_DIR}, dir.path());
  INFO(run.describe());
  REQUIRE(run.exit_code == 0);
  const e2e::RunResult result = e2e::run_program(
      {python, GANTRY_SOURCE_DIR "/tests/parity/checkpoint.py", kind, "work/checkpoints/last", "outputs.safetensors"},
      dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 0);
}

}  // namespace

TEST_CASE("PyTorch loads the checkpoint of a trained ResNet strictly and finds the same logits") {
  check_logits("{NAME: ResNet, STEM: cifar, IN_CHANNELS: 1, WIDTH: 8}", "resnet");
}

TEST_CASE("PyTorch loads the checkpoint of a trained ConvNet strictly and finds the same logits") {
  check_logits("{NAME: ConvNet, IMAGE_SIZE: [16, 16], WIDTHS: [4, 8]}", "conv_net");
}
