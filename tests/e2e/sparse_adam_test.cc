#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/resume.h"

// SparseAdam with an EmbeddingBag whose gradients are sparse. The head's are not, so it stays as it began.

namespace {

using e2e::Job;

constexpr char kTokensJob[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 6
  TRAIN_DATA: {NAME: test/Tokens, SIZE: 64, BATCH_SIZE: 7, NUM_WORKERS: 1}
  EVAL_DATA: {NAME: test/Tokens, SIZE: 30, BATCH_SIZE: 30, NUM_WORKERS: 0}
  MODEL:
    NAME: Classifier
    NUM_CLASSES: 3
    INPUT_KEY: tokens
    BACKBONE: {NAME: EmbeddingBag, NUM_EMBEDDINGS: 60, EMBEDDING_DIM: 8, SPARSE: true}
  FREEZE: {FREEZE_PART: [head]}
  OPTIMIZER: {NAME: SparseAdam, LEARNING_RATE: 0.1}
  METRICS: [{NAME: AccuracyMetric}]
  HOOKS:
    - {NAME: CheckpointHook, SAVE_LAST: true}
    - {NAME: test/LossTrace, FILE: losses.txt}
    - {NAME: test/RaiseSignal, SIGNAL: TERM}
  TRAIN_HOOKS: [{NAME: BackwardHook}]
)";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("SparseAdam with an EmbeddingBag learns and goes on to the same bytes after a stop within an epoch") {
  Job undisturbed(kTokensJob), stopped(kTokensJob);
  const e2e::RunResult result = undisturbed.run();
  CHECK(e2e::json_number(result.last_line(), {"metrics", "eval", "acc@1"}) == 1);
  CHECK(e2e::json_number(result.last_line(), {"metrics", "eval", "loss"}) < 0.3);
  stopped.run({e2e::at_iteration(13)}, 75);
  stopped.resume({e2e::at_iteration(37)}, 75);
  stopped.resume();
  REQUIRE(undisturbed.losses().size() == 60);
  e2e::check_same_training(undisturbed, stopped);
  CHECK(e2e::checkpoint_difference(undisturbed.checkpoint(50), undisturbed.checkpoint(60)) ==
        "model.safetensors differs; optimizer.safetensors differs; state.safetensors differs; ");
}

TEST_CASE("an EmbeddingBag trains with its tokens summed and with gradients that are not sparse") {
  for (const char* keys : {"POOLING: sum, SPARSE: false", "POOLING: mean"}) {
    INFO(keys);
    Job job(e2e::replaced(kTokensJob, "SPARSE: true", keys));
    const e2e::RunResult result = job.run({"SOLVER.OPTIMIZER={NAME: AdamW, LEARNING_RATE: 0.1}", "SOLVER.FREEZE=null"});
    CHECK(e2e::json_number(result.last_line(), {"metrics", "eval", "acc@1"}) == 1);
  }
}

TEST_CASE("SparseAdam accumulates windows and trains on as many steps fewer") {
  Job job(kTokensJob);
  const e2e::RunResult result = job.run({"SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=3", "SOLVER.MAX_EPOCHS=12"});
  CHECK(e2e::json_number(result.last_line(), {"metrics", "eval", "acc@1"}) == 1);
}

TEST_CASE("gradients are clipped by their norm where one of them is sparse") {
  // Each token is looked up more than once in a batch, so that what is clipped must be summed up before. To Adam's
  // steps a gradient's size is nothing, so the rows move by as much: EPS is what tells.
  const std::vector<std::string> changes = {"SOLVER.MAX_EPOCHS=2", "SOLVER.OPTIMIZER.EPS=1",
                                            "SOLVER.OPTIMIZER.BETAS=[0, 0]"};
  const auto loss = [&](std::vector<std::string> more) {
    more.insert(more.end(), changes.begin(), changes.end());
    Job job(kTokensJob);
    return e2e::json_number(job.run(more).last_line(), {"metrics", "eval", "loss"});
  };
  const std::string clip = "SOLVER.TRAIN_HOOKS[BackwardHook].GRADIENT_CLIP=";
  const double dense =
      loss({clip + "0.05", "SOLVER.MODEL.BACKBONE.SPARSE=false", "SOLVER.OPTIMIZER={NAME: Adam, LEARNING_RATE: 0.1}"});
  const double clipped = loss({clip + "0.05"});
  CHECK(clipped == doctest::Approx(dense).epsilon(1e-5));
  CHECK(loss({}) < clipped - 1e-3);
  CHECK(loss({clip + "1000"}) == loss({}));
}

TEST_CASE("SparseAdam on a model with dense gradients ends the run with the name of the first of them") {
  Job job(kTokensJob);
  const e2e::RunResult result = job.run({"SOLVER.FREEZE=null"}, 1);
  CHECK(contains(result.err, "that of head.weight is dense. Use AdamW, freeze head.weight"));
}

TEST_CASE("EmbeddingBag refuses tokens that it has no vector for and tensors that are no tokens") {
  Job job(kTokensJob);
  const e2e::RunResult few = job.run({"SOLVER.MODEL.BACKBONE.NUM_EMBEDDINGS=50"}, 1);
  CHECK(contains(few.err, "but NUM_EMBEDDINGS is 50: tokens are to be in [0, 50)"));
  const e2e::RunResult labels = job.run({"SOLVER.MODEL.INPUT_KEY=label"}, 1);
  CHECK(contains(labels.err, "EmbeddingBag takes int64 tokens [samples, tokens of each], not Long [7]"));
}
