#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "e2e/run.h"

// tools/convert: a classifier with its optimizer goes to PyTorch and back, and both sides go on with the same losses.

namespace {

constexpr char kJob[] = R"(
ENV: {SEED: 3, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 2
  TRAIN_DATA: {NAME: Synthetic, SIZE: 48, SHAPE: [1, 16, 16], NUM_CLASSES: 5, BATCH_SIZE: 8, NUM_WORKERS: 0}
  MODEL: {NAME: Classifier, NUM_CLASSES: 5, BACKBONE: {NAME: ConvNet, IMAGE_SIZE: [16, 16], WIDTHS: [4, 8]}}
  OPTIMIZER: OPTIMIZER_HERE
  TRAIN_HOOKS: [{NAME: BackwardHook}]
  HOOKS: [{NAME: CheckpointHook}, {NAME: test/SaveBatches, FILE: batches.safetensors}]
)";

const std::string kPython = GANTRY_SOURCE_DIR "/.venv/bin/python";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Conversion {
  e2e::TempDir dir;

  explicit Conversion(const std::string& optimizer) {
    dir.write("job.yaml", e2e::replaced(kJob, "OPTIMIZER_HERE", optimizer));
    gantry({});
  }
  void gantry(const std::vector<std::string>& changes) {
    std::vector<std::string> arguments{"run", "job.yaml", "--plugin-dir", GANTRY_PROBE_DIR};
    arguments.insert(arguments.end(), changes.begin(), changes.end());
    check(e2e::run_gantry(arguments, dir.path()));
  }
  e2e::RunResult convert(std::vector<std::string> arguments, int expected = 0) {
    arguments.insert(arguments.begin(), GANTRY_SOURCE_DIR "/tools/convert");
    e2e::RunResult result = e2e::run_program(arguments, dir.path());
    check(result, expected);
    return result;
  }
  void torch(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {kPython, GANTRY_SOURCE_DIR "/tests/parity/convert.py"});
    check(e2e::run_program(arguments, dir.path()));
  }
  static void check(const e2e::RunResult& result, int expected = 0) {
    INFO(result.describe());
    REQUIRE(result.exit_code == expected);
  }
};

bool no_python() {
  if (std::filesystem::exists(kPython)) return false;
  MESSAGE("skipped: there is no " << kPython);
  return true;
}

/// `kind`: what convert.py calls the optimizer.
void check_both_ways(const std::string& kind, const std::string& optimizer) {
  if (no_python()) return;
  Conversion run(optimizer);
  // Gantry's first epoch, PyTorch's second.
  run.convert({"to-torch", "work/checkpoints/ldm_step-6", "from_gantry.pth"});
  run.torch({"go-on", kind, "from_gantry.pth", "batches.safetensors", "6"});
  // PyTorch's first epoch, Gantry's second: and PyTorch's own second epoch is the same.
  run.torch({"train", kind == "groups" ? "SGD" : kind, "batches.safetensors", "6", "from_torch.pth"});
  run.convert({"to-checkpoint", "from_torch.pth", "--like", "work/checkpoints/ldm_step-6", "resumable"});
  std::filesystem::remove(run.dir.path("batches.safetensors"));
  run.gantry({"SOLVER.RESUME_FROM=resumable"});
  if (kind != "groups") run.torch({"go-on", kind, "from_torch.pth", "batches.safetensors", "6"});
  // What the checkpoint became is what it was made of.
  run.convert({"to-torch", "resumable", "again.pth"});
  run.torch({"same", kind, "from_torch.pth", "again.pth"});
}

}  // namespace

TEST_CASE("parity: a classifier with SGD goes to PyTorch and back and both go on with the same losses") {
  check_both_ways("SGD", "{NAME: SGD, LEARNING_RATE: 0.05, MOMENTUM: 0.9}");
}

TEST_CASE("parity: a classifier with AdamW goes to PyTorch and back and both go on with the same losses") {
  check_both_ways("AdamW", "{NAME: AdamW, LEARNING_RATE: 0.003, WEIGHT_DECAY: 0.01}");
}

TEST_CASE("parity: parameter groups go to PyTorch with their options") {
  check_both_ways(
      "groups",
      "{NAME: SGD, LEARNING_RATE: 0.05, MOMENTUM: 0.9, PARAM_GROUPS: [{MATCH: 'bias$', LEARNING_RATE: 0.2}]}");
}

TEST_CASE("parity: weights of PyTorch are a PRETRAINED_MODEL once they are converted") {
  if (no_python()) return;
  Conversion run("{NAME: SGD, LEARNING_RATE: 0.05, MOMENTUM: 0.9}");
  run.torch({"train", "SGD", "batches.safetensors", "6", "from_torch.pth"});
  run.convert({"from-torch", "from_torch.pth", "pretrained"});
  CHECK(run.dir.has("pretrained/optimizer.safetensors"));
  run.gantry({"SOLVER.MODEL.PRETRAINED_MODEL=pretrained", "SOLVER.OPTIMIZER.LEARNING_RATE=0", "SOLVER.WORK_DIR=fine"});
  run.torch({"same-weights", "SGD", "from_torch.pth", "fine/checkpoints/last/model.safetensors"});
  // A tied tensor is stored once and comes back under both names.
  run.torch({"tied", "SGD", "tied.pth"});
  run.convert({"from-torch", "tied.pth", "tied"});
  run.convert({"to-torch", "tied", "tied_again.pth"});
  run.torch({"check-tied", "SGD", "tied_again.pth", "tied/model.safetensors"});
}

TEST_CASE("parity: what cannot be converted is said and leaves nothing behind") {
  if (no_python()) return;
  Conversion run("{NAME: SGD, LEARNING_RATE: 0.05, MOMENTUM: 0.9}");
  run.dir.write("junk.pth", "junk");
  run.torch({"train", "SGD", "batches.safetensors", "1", "good.pth"});
  run.torch({"tied", "SGD", "other.pth"});
  const auto names = run.dir.list();
  const auto error = [&](const std::vector<std::string>& arguments) { return run.convert(arguments, 2).err; };
  CHECK(contains(error({"to-torch", "nothing", "x.pth"}), "there is no such file or folder"));
  CHECK(contains(error({"to-torch", "junk.pth", "x.pth"}), "junk.pth"));
  CHECK(contains(error({"from-torch", "junk.pth", "x"}), "torch.load cannot read it"));
  CHECK(contains(error({"from-torch", "none.pth", "x"}), "there is no such file"));
  CHECK(contains(error({"from-torch", "good.pth", "work"}), "is there already"));
  CHECK(contains(error({"to-checkpoint", "good.pth", "--like", "work", "x"}), "is no checkpoint"));
  const std::string misfit = error({"to-checkpoint", "other.pth", "--like", "work/checkpoints/last", "x"});
  CHECK(contains(misfit, "missing: head.weight"));
  CHECK(contains(misfit, "unexpected: encoder"));
  CHECK(run.dir.list() == names);
}
