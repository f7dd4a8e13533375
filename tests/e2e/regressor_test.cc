#include <cmath>
#include <string>
#include <vector>

#include "e2e/probe.h"

// Losses, metrics and transforms of fields in runs of a user's files.

namespace {

using e2e::replaced;

/// Two kinds of image, told apart by a number: 0 or 1.
const char kRegression[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 6
  TRAIN_DATA: {NAME: Synthetic, SIZE: 128, SHAPE: [1, 6, 6], NUM_CLASSES: 2, BATCH_SIZE: 16, NUM_WORKERS: 0}
  EVAL_DATA: {NAME: Synthetic, SIZE: 50, SHAPE: [1, 6, 6], NUM_CLASSES: 2, BATCH_SIZE: 16, NUM_WORKERS: 0}
  MODEL:
    NAME: Regressor
    TARGET_KEY: label
    BACKBONE: {NAME: Mlp, INPUT_SIZE: 36, HIDDEN: [16]}
    LOSS: {NAME: MSELoss}
  OPTIMIZER: {NAME: Adam, LEARNING_RATE: 0.01}
  METRICS: [{NAME: MeanMetric, KEYS: [loss, prediction]}]
  TRAIN_HOOKS: [{NAME: BackwardHook}]
)";

const char kPoints[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 2
  TRAIN_DATA:
    NAME: test/TaggedPoints
    SIZE: 32
    BATCH_SIZE: 5
    NUM_WORKERS: 2
    TRANSFORMS:
      - {NAME: ToTensor, KEYS: [x, y], DTYPE: float32}
      - {NAME: Rename, INPUT_KEY: [x, y], OUTPUT_KEY: [img, target]}
      - {NAME: Select, KEYS: [img, target], META_KEYS: [data_key]}
  MODEL: {NAME: Regressor, BACKBONE: {NAME: Mlp, INPUT_SIZE: 4, HIDDEN: [8]}, LOSS: {NAME: L1Loss}}
  OPTIMIZER: {NAME: SGD, LEARNING_RATE: 0.01}
  TRAIN_HOOKS: [{NAME: BackwardHook}]
)";

const char kConfusion[] =
    "SOLVER.METRICS=[{NAME: ConfusionMatrixMetric, NUM_CLASSES: 3}, {NAME: AccuracyMetric}, "
    "{NAME: ConfusionMatrixMetric, NUM_CLASSES: 3, PER_CLASS: false, PREFIX: again/}]";

struct Run {
  e2e::TempDir dir;
  e2e::RunResult result;

  explicit Run(const std::string& text, const std::vector<std::string>& changes = {}) {
    dir.write("c.yaml", text);
    std::vector<std::string> arguments{"run", "c.yaml", "--json", "--plugin-dir", GANTRY_PROBE_DIR};
    arguments.insert(arguments.end(), changes.begin(), changes.end());
    result = e2e::run_gantry(arguments, dir.path());
  }
  double metric(const std::string& mode, const std::string& name) const {
    return e2e::json_number(result.last_line(), {"metrics", mode, name});
  }
};

void refused(const std::string& text, const std::string& line, const std::string& message) {
  const Run run(text);
  INFO(run.result.describe());
  CHECK(run.result.exit_code == 2);
  const int number = e2e::line_of(text, line);
  REQUIRE(number > 0);
  CHECK(run.result.err.find("c.yaml:" + std::to_string(number)) != std::string::npos);
  CHECK(run.result.err.find(message) != std::string::npos);
}

}  // namespace

TEST_CASE("Regressor learns with each loss") {
  struct Case {
    const char* loss;
    double of_ignorance;  // of the best answer that does not look at the image
  };
  const std::vector<Case> cases = {
      {"{NAME: MSELoss}", 0.25}, {"{NAME: L1Loss}", 0.5}, {"{NAME: BCELoss, POS_WEIGHT: 1}", std::log(2)}};
  for (const Case& one : cases) {
    INFO(one.loss);
    const Run run(replaced(kRegression, "{NAME: MSELoss}", one.loss));
    INFO(run.result.describe());
    REQUIRE(run.result.exit_code == 0);
    CHECK(run.metric("eval", "loss") < 0.5 * one.of_ignorance);
    CHECK(run.metric("eval", "mean_loss") == doctest::Approx(run.metric("eval", "loss")).epsilon(1e-6));
    CHECK(std::isfinite(run.metric("eval", "mean_prediction")));
  }
}

TEST_CASE("MSELoss is the default of Regressor") {
  const Run named(kRegression), unnamed(replaced(kRegression, "    LOSS: {NAME: MSELoss}\n", ""));
  REQUIRE(named.result.exit_code == 0);
  CHECK(named.metric("eval", "loss") == unnamed.metric("eval", "loss"));
}

TEST_CASE("ToTensor and Rename and Select fit a dataset to a model") {
  const Run run(kPoints);
  INFO(run.result.describe());
  REQUIRE(run.result.exit_code == 0);
  CHECK(std::isfinite(run.metric("train", "loss")));
  // Each of them is needed.
  for (const char* line : {"      - {NAME: ToTensor, KEYS: [x, y], DTYPE: float32}\n",
                           "      - {NAME: Rename, INPUT_KEY: [x, y], OUTPUT_KEY: [img, target]}\n"}) {
    CHECK(Run(replaced(kPoints, line, "")).result.exit_code != 0);
  }
}

TEST_CASE("ConfusionMatrixMetric reports each class beside the means and several metrics stand side by side") {
  const e2e::Training run({kConfusion, e2e::kEvalData});
  for (const char* figure : {"precision", "recall", "f1"}) {
    double sum = 0;
    int64_t classes = 0;
    for (const char* c : {"@0", "@1", "@2"}) {
      const double value = run.number({"metrics", "eval", std::string(figure) + c});
      if (std::isnan(value)) continue;
      sum += value;
      ++classes;
    }
    REQUIRE(classes > 0);
    const double macro = run.number({"metrics", "eval", std::string("macro_") + figure});
    CHECK(macro == doctest::Approx(sum / static_cast<double>(classes)));
    CHECK(run.number({"metrics", "eval", std::string("again/macro_") + figure}) == macro);
  }
  CHECK(std::isfinite(run.number({"metrics", "eval", "acc@1"})));
}

TEST_CASE("a cross entropy with weights and smoothing trains to other weights than one without") {
  const auto loss = [](const std::string& keys) {
    const e2e::Training run({"SOLVER.MODEL.LOSS={NAME: CrossEntropy" + keys + "}", e2e::kEvalData});
    return run.number({"metrics", "eval", "loss"});
  };
  const double plain = loss("");
  CHECK(loss(", LABEL_SMOOTHING: 0.2") != plain);
  CHECK(loss(", WEIGHT: [1, 2, 3]") != plain);
  CHECK(loss(", IGNORE_INDEX: 1") != plain);
  CHECK(loss(", LABEL_SMOOTHING: 0, WEIGHT: [1, 1, 1]") == doctest::Approx(plain).epsilon(1e-5));
}

TEST_CASE("parts that do not fit together are refused with file and line") {
  const auto data = [](const std::string& key) {
    return replaced(kRegression, "NUM_WORKERS: 0}\n  EVAL_DATA", "NUM_WORKERS: 0,\n    " + key + "}\n  EVAL_DATA");
  };
  refused(data("TRANSFORMS: [{NAME: Resize, SIZE: [1, 2, 3]}]"), "SIZE: [1", "not 3 numbers");
  refused(data("TRANSFORMS: [{NAME: Resize, SIZE: 0}]"), "SIZE: 0", "must be >= 1");
  refused(data("TRANSFORMS: [{NAME: Resize, SIZE: 4, INTERPOLATION: cubic}]"), "INTERPOLATION", "bicubic");
  refused(data("TRANSFORMS: [{NAME: Resize, SIZE: 4, BACKEND: magick}]"), "BACKEND", "leave it out");
  refused(data("TRANSFORMS: [{NAME: Resize, SIZE: 4, INPUT_KEY: label}]"), "INPUT_KEY", "'label' has shape [16]");
  refused(data("TRANSFORMS: [{NAME: RandomResizedCrop, SIZE: 4, SCALE: [0.9, 0.1]}]"), "SCALE",
          "0.9 is larger than 0.1");
  refused(data("TRANSFORMS: [{NAME: Compose, TRANSFORMS: [{NAME: Rezize}]}]"), "Rezize", "did you mean 'Resize'");
  refused(data("TRANSFORMS: [{NAME: Rename, INPUT_KEY: img, OUTPUT_KEY: label}]"), "OUTPUT_KEY", "another 'label'");
  refused(data("SAMPLER: {NAME: LoopSampler, UNTIL: 200}"), "UNTIL", "the dataset has 128 samples");
  refused(data("SAMPLER: {NAME: MultiFoldSampler, NUM_FOLDS: 0}"), "NUM_FOLDS", "must be >= 1");
  refused(data("SAMPLER: {NAME: MixtureOfSamplers, SUB_SAMPLERS: []}"), "SUB_SAMPLERS", "SUB_SAMPLERS");
  refused(data("SAMPLER: {NAME: MixtureOfSamplers, SUB_SAMPLERS: [{NAME: LoopSampler}], PROBS: [1, 2]}"), "PROBS",
          "PROBS has 2 numbers, SUB_SAMPLERS has 1");
  const auto loss = [](const std::string& loss) { return replaced(kRegression, "LOSS: {NAME: MSELoss}", loss); };
  refused(loss("LOSS: {NAME: BCELoss, POS_WEIGHT: 2, FROM_LOGITS: false}"), "POS_WEIGHT", "with logits alone");
  refused(loss("LOSS: {NAME: BCELoss, POS_WEIGHT: [1, 2]}"), "POS_WEIGHT", "POS_WEIGHT has 2 numbers");
  const auto metric = [](const std::string& metric) {
    return replaced(kRegression, "{NAME: MeanMetric, KEYS: [loss, prediction]}", metric);
  };
  refused(metric("{NAME: ConfusionMatrixMetric, NUM_CLASSES: 2, KEYS: [prediction, label]}"), "NUM_CLASSES: 2, KEYS",
          "scores for 1 classes");
}

TEST_CASE("an output that is not there is named with what there is") {
  const Run run(replaced(kRegression, "KEYS: [loss, prediction]", "KEYS: [loss.1]"));
  INFO(run.result.describe());
  CHECK(run.result.exit_code == 1);
  CHECK(run.result.err.find("have 'loss.1'") != std::string::npos);
  CHECK(run.result.err.find("loss, prediction") != std::string::npos);
}
