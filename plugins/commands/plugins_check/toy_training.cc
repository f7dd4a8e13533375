#include "toy_training.h"

#include <gantry/json.h>
#include <gantry/text.h>

#include <algorithm>

namespace plugins_check {

namespace {

// 20 images of 10 classes, in 5 batches; 2 batches in each evaluation.
constexpr char kTrainData[] = "{NAME: Synthetic, SIZE: 20, BATCH_SIZE: 4, NUM_WORKERS: 1";
constexpr char kEvalData[] = "{NAME: Synthetic, SIZE: 8, BATCH_SIZE: 4, NUM_WORKERS: 1}";
constexpr char kBackbone[] = "{NAME: Mlp, INPUT_SIZE: 784, HIDDEN: [8]}";

struct Known {
  const char* key;
  const char* value;
};
/// What keys of these names can only mean here, where they are required.
constexpr Known kKnownValues[] = {
    {"LEARNING_RATE", "0.05"},  {"NUM_CLASSES", "10"},   {"INPUT_SIZE", "784"},           {"IN_CHANNELS", "1"},
    {"IMAGE_SIZE", "[28, 28]"}, {"BACKBONE", kBackbone}, {"LOSS", "{NAME: CrossEntropy}"}};
/// What the training gives to its solver in any case.
constexpr const char* kSolverKeys[] = {"WORK_DIR", "MODEL", "OPTIMIZER", "TRAIN_DATA", "EVAL_DATA", "MAX_EPOCHS"};

/// Where a component of a kind stands.
std::string place_of(const Candidate& candidate, const ComponentFacts& facts) {
  const std::string item = gantry::cat('[', candidate.name, ']');
  if (candidate.kind == "hook") return (facts.triggers_backward ? "SOLVER.TRAIN_HOOKS" : "SOLVER.HOOKS") + item;
  if (candidate.kind == "optimizer") return "SOLVER.OPTIMIZER";
  if (candidate.kind == "lr_scheduler") return "SOLVER.LR_SCHEDULER";
  if (candidate.kind == "loss") return "SOLVER.MODEL.LOSS";
  if (candidate.kind == "metric") return "SOLVER.METRICS" + item;
  if (candidate.kind == "transform") return "SOLVER.TRAIN_DATA.TRANSFORMS" + item;
  if (candidate.kind == "sampler") return "SOLVER.TRAIN_DATA.SAMPLER";
  if (candidate.kind == "dataset") return "SOLVER.TRAIN_DATA";
  if (candidate.kind == "model") return "SOLVER.MODEL";
  if (candidate.kind == "module") return "SOLVER.MODEL.BACKBONE";
  if (candidate.kind == "file_system") return "SOLVER.FILE_SYSTEM" + item;
  return "SOLVER";
}

std::vector<std::string> state_prefixes(const Candidate& candidate) {
  if (candidate.kind == "hook") return {gantry::cat("hooks/", candidate.name, '/')};
  if (candidate.kind == "optimizer") return {"optimizer/", "optimizer_whole/"};
  if (candidate.kind == "lr_scheduler") return {"scheduler/"};
  if (candidate.kind == "metric") return {"metrics/"};
  if (candidate.kind == "sampler") return {"data/sampler/"};
  if (candidate.kind == "dataset") return {"data/dataset/"};
  return {};
}

std::string component(const Candidate& candidate, const ComponentFacts& facts, std::vector<std::string>& missing) {
  std::string text =
      gantry::cat("{NAME: ", gantry::json_string(candidate.name), ", PLUGIN: ", gantry::json_string(candidate.file));
  for (const ComponentFacts::Key& key : facts.keys) {
    if (!key.required || std::any_of(candidate.given.begin(), candidate.given.end(),
                                     [&](const auto& given) { return given.first == key.name; }))
      continue;
    const auto* known = std::find_if(std::begin(kKnownValues), std::end(kKnownValues),
                                     [&](const Known& one) { return key.name == one.key; });
    if (known != std::end(kKnownValues))
      text += gantry::cat(", ", key.name, ": ", known->value);
    else
      missing.push_back(
          gantry::cat(key.name, " (", key.kind.empty() ? key.type : gantry::cat("of kind ", key.kind), ")"));
  }
  if (candidate.kind == "dataset") text += ", BATCH_SIZE: 4";
  return text + "}";
}

}  // namespace

ToyTraining make_toy_training(const Candidate& candidate, const ComponentFacts& facts) {
  ToyTraining toy;
  const std::string& kind = candidate.kind;
  ComponentFacts asked = facts;
  if (kind == "solver")
    std::erase_if(asked.keys, [](const ComponentFacts::Key& key) {
      return std::find(std::begin(kSolverKeys), std::end(kSolverKeys), key.name) != std::end(kSolverKeys);
    });
  const std::string mine = component(candidate, asked, toy.missing);
  const auto one = [&](const char* of, const std::string& otherwise) { return kind == of ? mine : otherwise; };
  const auto list = [&](const char* of) { return kind == of ? gantry::cat("[", mine, "]") : std::string("[]"); };

  std::string train = gantry::cat(kTrainData, kind == "sampler" ? ", SAMPLER: " + mine : "",
                                  kind == "transform" ? ", TRANSFORMS: [" + mine + "]" : "", "}");
  const std::string model = gantry::cat("{NAME: Classifier, NUM_CLASSES: 10, BACKBONE: ", one("module", kBackbone),
                                        kind == "loss" ? ", LOSS: " + mine : "", "}");
  std::string backward = "{NAME: BackwardHook}", hooks;
  // One that there is already stands in its own place.
  const bool checkpoints = kind == "hook" && candidate.name == "CheckpointHook";
  if (!checkpoints) hooks = "{NAME: CheckpointHook, SAVE_LAST: true}";
  if (kind == "hook" && facts.triggers_backward) {
    backward = mine;
  } else if (kind == "hook") {
    hooks += (hooks.empty() ? "" : ", ") + mine;
  }
  toy.yaml = gantry::cat("ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}\nSOLVER:\n",
                         kind == "solver" ? gantry::cat("  NAME: ", gantry::json_string(candidate.name),
                                                        "\n  PLUGIN: ", gantry::json_string(candidate.file), '\n')
                                          : "  NAME: TrainValSolver\n",
                         "  WORK_DIR: work\n  MAX_EPOCHS: 2\n  LIMIT_TRAIN_BATCHES: 5\n",
                         "  TRAIN_DATA: ", one("dataset", train), "\n  EVAL_DATA: ", kEvalData,
                         "\n  MODEL: ", one("model", model),
                         "\n  OPTIMIZER: ", one("optimizer", "{NAME: SGD, LEARNING_RATE: 0.05, MOMENTUM: 0.9}"), '\n',
                         kind == "lr_scheduler" ? gantry::cat("  LR_SCHEDULER: ", mine, '\n') : "",
                         kind == "file_system" ? gantry::cat("  FILE_SYSTEM: [", mine, "]\n") : "",
                         "  METRICS: ", list("metric"), "\n  TRAIN_HOOKS: [", backward, "]\n  HOOKS: [", hooks, "]\n");
  const std::string place = place_of(candidate, facts);
  for (const auto& [key, value] : candidate.given) toy.overrides.push_back(gantry::cat(place, '.', key, '=', value));
  // In an epoch, at its end, in an evaluation, in the next epoch. What counts differently is stopped where it can be.
  const bool counts = kind == "dataset" || kind == "sampler" || kind == "solver" || facts.triggers_backward;
  toy.stops = counts ? std::vector<std::string>{"--random", "4", "--seed", "1"}
                     : std::vector<std::string>{"--stop-at", "3,5,eval:1,8"};
  toy.state_prefixes = state_prefixes(candidate);
  return toy;
}

}  // namespace plugins_check
