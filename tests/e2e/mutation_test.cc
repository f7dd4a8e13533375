#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/stop_and_go.h"

// What `gantry stop-and-go --mutate` changes, and whether it is noticed.

namespace {

using e2e::StopAndGo;

/// Everything that keeps state, small: an average of the weights, early stopping, a schedule that goes by evaluations,
/// AdamW, dropout, augmentation, a sampler and a dataset with state, a third party's hook, logs.
constexpr char kEverything[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 6
  TRAIN_DATA:
    NAME: test/DriftingImages
    SIZE: 20
    BATCH_SIZE: 4
    NUM_WORKERS: 1
    TRANSFORMS: [{NAME: RandomCrop, SIZE: 8, PADDING: 1}, {NAME: RandomHorizontalFlip}]
  EVAL_DATA: {NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 6, NUM_WORKERS: 0}
  MODEL:
    NAME: Classifier
    NUM_CLASSES: 3
    BACKBONE: {NAME: test/DropoutConvNet}
  OPTIMIZER: {NAME: AdamW, LEARNING_RATE: 0.01, WEIGHT_DECAY: 0.1, PARAM_GROUPS: [{MATCH: [bias$], WEIGHT_DECAY: 0}]}
  LR_SCHEDULER: {NAME: ReduceLROnPlateau, PATIENCE: 1}
  METRICS: [{NAME: AccuracyMetric}]
  HOOKS:
    - {NAME: CheckpointHook, SAVE_LAST: true, SAVE_BEST_BY: -loss}
    - {NAME: ModelEmaHook, BETA: 0.9}
    - {NAME: EarlyStopHook, METRIC: -loss, PATIENCE: 10}
    - {NAME: TensorboardLogHook, LOG_INTERVAL: 2}
    - {NAME: JsonLogHook, LOG_INTERVAL: 2}
    - {NAME: test/Counter, FILE: counts.txt}
  TRAIN_HOOKS: [{NAME: BackwardHook}, {NAME: LogHook, LOG_INTERVAL: 2}]
)";

}  // namespace

TEST_CASE("every item of the state is noticed and named when it is changed") {
  const StopAndGo run({"--mutate", "all"}, 1, kEverything);
  const auto& changes = run.report.at("mutations");
  for (const auto& change : changes) {
    INFO(change.at("path").get<std::string>() << ": " << change.at("how").dump());
    if (change.at("after") == nullptr) continue;  // of nothing
    CHECK(change.at("before") != change.at("after"));
    CHECK(change.at("noticed") == true);
    CHECK(change.at("named") == true);
  }
  CHECK(changes.size() > 60);
  // A value of each part that can forget, the third party's among them.
  for (const char* path : {"model/head.weight", "model/backbone.norm.running_mean", "optimizer/head.weight/exp_avg",
                           "optimizer/head.weight/exp_avg_sq", "trainer/lr/0", "trainer/lr/1", "trainer/step",
                           "trainer/cursor", "trainer/epoch", "data/dataset/state/drift", "rng/0",
                           "hooks/CheckpointHook/state/best/value", "hooks/test/Counter/state/losses/train"})
    CHECK(run.change(path).at("noticed") == true);
  for (const char* part : {"hooks/ModelEmaHook/state/", "hooks/EarlyStopHook/state/", "scheduler/state/"}) {
    INFO(part);
    bool there = false;
    for (const auto& change : changes) there = there || change.at("path").get<std::string>().starts_with(part);
    CHECK(there);
  }
  CHECK(run.left().empty());
}

TEST_CASE("one changed value is named with where it shows") {
  const StopAndGo weights({"--mutate", "model/head.weight"}, 1);
  CHECK(weights.says("NOTICED"));
  const auto change = weights.change("model/head.weight");
  CHECK(std::stod(change.at("after").get<std::string>()) - std::stod(change.at("before").get<std::string>()) ==
        doctest::Approx(1));
  CHECK(change.at("how").get<std::string>().starts_with("when it was restored; then "));
  CHECK(weights.comparison("restored").at("first").at("field") == "model/head.weight");
  CHECK(weights.comparison("recorder", "WeightsCallback").at("equal") == false);
  // In the middle of the run, within an epoch, and where nothing is saved anyway.
  CHECK(weights.says("stopped after iteration 16"));

  // Refused by the resume itself, before anything runs.
  const StopAndGo seed({"--mutate", "data/seed", "--stop-at", "4"}, 1);
  CHECK(seed.change("data/seed")
            .at("how")
            .get<std::string>()
            .find("refused (exit code 2): data/seed: 2 in the checkpoint") == 0);
  // A group is its first value.
  CHECK(StopAndGo({"--mutate", "rng"}, 1).change("rng/0").at("named") == true);
}

TEST_CASE("what can be changed is listed with its groups") {
  const StopAndGo list({"--mutate", "list"});
  for (const char* text :
       {"groups\n", "  weights ", "  optimizer ", "  lr ", "  rng ", "  counters ", "  hooks ", "values\n",
        "  model/head.weight\n", "  rng/0\n", "  hooks/test/Counter#2/state/counts/before_step train\n"})
    CHECK(list.says(text));
  CHECK_FALSE(list.says("  ema "));  // there is none
  const StopAndGo unknown({"--mutate", "modle/head.weight"}, 2);
  CHECK(unknown.says("the state has no item 'modle/head.weight'; did you mean model/head.weight"));
}

TEST_CASE("a value that nothing restores is reported as not noticed") {
  // The hook is asked for its state and forgets what it is given.
  const StopAndGo run({"--mutate", "hooks/test/Amnesiac/state/memory"}, 0, e2e::job_with("{NAME: test/Amnesiac}"));
  CHECK(run.says("NOT NOTICED"));
  CHECK(run.report.at("mutations")[0].at("noticed") == false);
}
