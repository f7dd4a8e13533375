#include <ATen/core/Tensor.h>
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "e2e/resume.h"
#include "gantry/safetensors.h"

// Diffusion models against what is known of normally distributed data, and the solver that trains and shows them.

namespace {

using e2e::at_iteration;
using e2e::Job;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// --- a perfect denoiser: nothing is trained ---

const char kPerfect[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: DiffusionSolver
  WORK_DIR: work
  EVAL_DATA: {NAME: test/GaussianImages, SIZE: 1024, BATCH_SIZE: 256}
  SAMPLE_ARGS: {STEPS: 1000, GUIDANCE: 1}
  MODEL:
    NAME: Diffusion
    NETWORK: {NAME: test/GaussianDenoiser, PREDICTION: flow}
)";
const std::string kNoise = "SOLVER.MODEL.PREDICTION=noise";
const std::string kNoiseNetwork = "SOLVER.MODEL.NETWORK.PREDICTION=noise";
const std::vector<std::string> kCosine = {"SOLVER.MODEL.SCHEDULE=cosine", "SOLVER.MODEL.NETWORK.SCHEDULE=cosine"};

struct Samples {
  at::Tensor values;  ///< [N, C, H, W] in [-1, 1]
  at::Tensor label;
  double mean, std;
};

Samples read_samples(const Job& job, const std::string& iteration = "0") {
  const auto file = gantry::SafetensorsFile::open(job.work("samples/" + iteration + ".safetensors"));
  Samples samples;
  REQUIRE((file.tensor("img").scalar_type() == at::kByte));
  samples.values = file.tensor("img").to(at::kDouble).div(127.5).sub(1);
  if (file.find("label") != nullptr) samples.label = file.tensor("label").clone();
  samples.mean = samples.values.mean().item<double>();
  samples.std = samples.values.std().item<double>();
  return samples;
}

/// Pixels of mean 0.2 and standard deviation 0.25, within [-1, 1] as good as always.
void check_recovered(const std::vector<std::string>& changes) {
  const Job job(kPerfect);
  job.run(changes + std::vector<std::string>{"SOLVER.SAVE_SAMPLES=256", "SOLVER.MODEL.NETWORK.MEANS=[0.2]",
                                             "SOLVER.MODEL.NETWORK.STD=0.25"});
  const Samples samples = read_samples(job);
  REQUIRE(samples.values.sizes() == at::IntArrayRef({256, 1, 4, 4}));
  CHECK_FALSE(samples.label.defined());
  CHECK(std::abs(samples.mean - 0.2) < 0.012);
  CHECK(std::abs(samples.std - 0.25) < 0.012);
}

double eval_loss(const std::vector<std::string>& changes) {
  const Job job(kPerfect);
  return e2e::json_number(job.run(changes).last_line(), {"metrics", "eval", "loss"});
}

}  // namespace

TEST_CASE("Euler steps lead to the distribution that the flow was learnt from") { check_recovered({}); }
TEST_CASE("DDIM leads to the distribution of the data under both schedules") {
  check_recovered({kNoise, kNoiseNetwork});
  check_recovered(std::vector{kNoise, kNoiseNetwork} + kCosine);
}
TEST_CASE("DDPM leads to the distribution of the data under both schedules") {
  const std::string ddpm = "SOLVER.SAMPLE_ARGS.SAMPLER=ddpm";
  check_recovered({kNoise, kNoiseNetwork, ddpm});
  check_recovered(std::vector{kNoise, kNoiseNetwork, ddpm} + kCosine);
}

TEST_CASE("all samples of data that are one image are that image however few the steps") {
  for (const std::vector<std::string>& changes : {std::vector<std::string>{},
                                                  {kNoise, kNoiseNetwork},
                                                  {kNoise, kNoiseNetwork, "SOLVER.SAMPLE_ARGS.SAMPLER=ddpm"}}) {
    const Job job(kPerfect);
    job.run(changes + std::vector<std::string>{"SOLVER.SAVE_SAMPLES=8", "SOLVER.MODEL.NETWORK.MEANS=[0.2]",
                                               "SOLVER.MODEL.NETWORK.STD=0", "SOLVER.SAMPLE_ARGS.STEPS=3"});
    const Samples samples = read_samples(job);
    CHECK(std::abs(samples.mean - 0.2) < 1e-6);  // 153 of 255 exactly
    CHECK(samples.std == 0);
  }
}

TEST_CASE("samples are of the class that was asked for and guidance leads away from what has no class") {
  const std::vector<std::string> two = {"SOLVER.MODEL.NETWORK.MEANS=[-0.3, 0.1, 0]", "SOLVER.MODEL.NETWORK.STD=0.1",
                                        "SOLVER.SAVE_SAMPLES=100", "SOLVER.SAMPLE_ARGS.STEPS=100"};
  for (const double guidance : {0.0, 1.0, 3.0}) {
    const Job job(kPerfect);
    job.run(two + std::vector{"SOLVER.SAMPLE_ARGS.GUIDANCE=" + std::to_string(guidance)});
    const Samples samples = read_samples(job);
    REQUIRE(samples.label.sizes() == at::IntArrayRef({100}));
    for (const int64_t label : {0, 1}) {
      const at::Tensor mask = samples.label.eq(label);
      CHECK(mask.sum().item<int64_t>() == 50);
      const double mean = samples.values.index_select(0, mask.nonzero().view({-1})).mean().item<double>();
      CHECK(std::abs(mean - guidance * (label == 0 ? -0.3 : 0.1)) < 0.02);
    }
  }
}

// A flow's target e - x has, given (1-t) x + t e with x and e standard normal, the variance 1 / ((1-t)^2 + t^2), and
// the integral of that over t is pi / 2. For one image it is zero. Another sign or another mixture would show.
TEST_CASE("the loss of a perfect denoiser of a flow is the variance that is left") {
  CHECK(std::abs(eval_loss({}) / (std::numbers::pi / 2) - 1) < 0.02);
  CHECK(eval_loss({"SOLVER.EVAL_DATA.MEAN=0.4", "SOLVER.EVAL_DATA.STD=0", "SOLVER.MODEL.NETWORK.MEANS=[0.4]",
                   "SOLVER.MODEL.NETWORK.STD=0"}) < 1e-6);
}

// Given a x + b e, e has the variance a^2 where a^2 + b^2 = 1 and both are standard normal.
TEST_CASE("the loss of a perfect denoiser of noise is the variance that is left under both schedules") {
  double linear = 0, cosine = 0, share = 1;
  for (int step = 1; step <= 1000; ++step) {
    share *= 1 - (1e-4 + (0.02 - 1e-4) * (step - 1) / 999);
    linear += share / 1000;
    cosine += std::pow(std::cos((step / 1000.0 + 0.008) / 1.008 * std::numbers::pi / 2), 2) /
              std::pow(std::cos(0.008 / 1.008 * std::numbers::pi / 2), 2) / 1000;
  }
  CHECK(std::abs(eval_loss({kNoise, kNoiseNetwork}) / linear - 1) < 0.02);
  CHECK(std::abs(eval_loss(std::vector{kNoise, kNoiseNetwork} + kCosine) / cosine - 1) < 0.02);
}

// --- training ---

namespace {

/// 22 images in 6 batches of 4, the last one short, twice and a half times through.
const char kTraining[] = R"(
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: DiffusionSolver
  WORK_DIR: work
  MAX_STEPS: 15
  EVAL_INTERVAL: 5
  SAVE_SAMPLES: 6
  TRAIN_DATA: {NAME: Synthetic, SIZE: 22, SHAPE: [1, 6, 7], NUM_CLASSES: 3, BATCH_SIZE: 4, NUM_WORKERS: 1}
  EVAL_DATA: {NAME: Synthetic, SIZE: 5, SHAPE: [1, 6, 7], NUM_CLASSES: 3, BATCH_SIZE: 4, NUM_WORKERS: 0}
  SAMPLE_ARGS: {NUM: 2, STEPS: 3}
  MODEL:
    NAME: Diffusion
    NETWORK: {NAME: UNet, WIDTHS: [8, 8], NUM_CLASSES: 3, ATTENTION: true, DROPOUT: 0.1}
  OPTIMIZER: {NAME: Adam, LEARNING_RATE: 0.01}
  TRAIN_HOOKS: [{NAME: BackwardHook}]
  HOOKS:
    - {NAME: CheckpointHook, INTERVAL: 5, SAVE_LAST: true}
    - {NAME: ModelEmaHook, BETA: 0.9}
    - {NAME: test/LossTrace, FILE: losses.txt}
    - {NAME: test/ShowProbes, FILE: shown.txt}
    - {NAME: test/RaiseSignal, SIGNAL: TERM}
)";

std::string file_of_samples(const Job& job) { return job.dir.read("work/samples/15.safetensors"); }

}  // namespace

TEST_CASE("a step loop of a DiffusionSolver begins the data anew where they end") {
  const Job job(kTraining);
  const e2e::RunResult result = job.run();
  CHECK(e2e::json_number(result.last_line(), {"iteration"}) == 15);
  CHECK(job.losses().size() == 15);
}

TEST_CASE("a DiffusionSolver stopped within an epoch and in an evaluation goes on to the same bytes and samples") {
  const Job undisturbed(kTraining), stopped(kTraining);
  undisturbed.run();
  stopped.run({at_iteration(7)}, 75);
  stopped.resume(e2e::at_point("eval.after_iter", 2, 1), 75);
  stopped.resume();
  REQUIRE(undisturbed.losses().size() == 15);
  e2e::check_same_training(undisturbed, stopped);
  CHECK(file_of_samples(stopped) == file_of_samples(undisturbed));
  CHECK(e2e::checkpoint_difference(undisturbed.checkpoint(10), undisturbed.checkpoint(15)) != "");
}

TEST_CASE("the same seeds give the same samples and another seed of the samples gives others of the same model") {
  for (const std::vector<std::string>& model :
       {std::vector<std::string>{}, {kNoise, "SOLVER.SAMPLE_ARGS.SAMPLER=ddpm"}}) {
    const Job first(kTraining), second(kTraining), other(kTraining);
    first.run(model);
    // How many are shown before makes no difference to those that are saved.
    second.run(model + std::vector<std::string>{"SOLVER.SAMPLE_ARGS.NUM=3"});
    other.run(model + std::vector<std::string>{"SOLVER.SAMPLE_ARGS.SEED=5"});
    CHECK(file_of_samples(first) == file_of_samples(second));
    CHECK(file_of_samples(first) != file_of_samples(other));
    e2e::check_same_training(first, other);
  }
}

TEST_CASE("samples that are shown or saved change nothing in training") {
  const Job with(kTraining), without(kTraining);
  with.run();
  without.run({"SOLVER.SAVE_SAMPLES=0", "SOLVER.EVAL_INTERVAL=-1",
               "SOLVER.HOOKS=[{NAME: CheckpointHook, INTERVAL: 5, SAVE_LAST: true}, {NAME: ModelEmaHook, BETA: 0.9}, "
               "{NAME: test/LossTrace, FILE: losses.txt}]"});
  REQUIRE(with.losses().size() == 15);
  CHECK(with.losses() == without.losses());
  CHECK_FALSE(without.dir.has("work/samples"));
}

TEST_CASE("a DiffusionSolver shows samples of each class in evaluations and what the model sees in training") {
  const Job job(kTraining);
  job.run({"SOLVER.SAMPLE_ARGS.CLASS_NAMES=[shoe, hat, bag]"});
  std::vector<std::string> beginnings, digests;
  for (const std::string& line : job.lines("shown.txt")) {
    std::istringstream words(line);
    std::string mode, iteration, name;
    words >> mode >> iteration >> name;
    beginnings.push_back(mode + " " + iteration + " " + name);
    if (name != "samples") continue;
    CHECK(contains(line, " [6, 1, 6, 7] "));
    CHECK(line.ends_with(" shoe shoe hat hat bag bag"));
    digests.push_back(line.substr(line.find("] ")));
  }
  const std::vector<std::string> expected = {"train 0 clean",  "train 0 noisy",   "train 0 predicted",
                                             "eval 5 samples", "eval 10 samples", "eval 15 samples"};
  CHECK(beginnings == expected);
  REQUIRE(digests.size() == 3);
  CHECK(digests[0] != digests[1]);  // from the same noise, by a model that has learnt meanwhile
}

TEST_CASE("a DiffusionSolver that a hook finishes saves the samples of its last evaluation") {
  const Job job(kTraining);
  job.run({"SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, {NAME: test/RequestStop, HOW: finish, AT_ITERATION: 6}]"});
  CHECK(job.names("work/samples") == std::vector<std::string>{"7.safetensors"});
}

TEST_CASE("what a diffusion model cannot be is refused with the key and the reason") {
  struct Bad {
    std::vector<std::string> changes;
    int exit_code;
    std::string message;
  };
  const std::vector<Bad> all = {
      {{"SOLVER.SAMPLE_ARGS.SAMPLER=ddim"},
       2,
       ": SAMPLER is ddim, and the model Diffusion as it is configured offers: euler"},
      {{kNoise, "SOLVER.SAMPLE_ARGS.SAMPLER=euler"}, 2, "offers: ddim, ddpm"},
      {{"SOLVER.SAMPLE_ARGS.CLASS_NAMES=[a, b]"}, 2, ": CLASS_NAMES has 2 names, and the model has 3 classes"},
      {{"SOLVER.SAMPLE_ARGS.STEPS=0"}, 2, "STEPS"},
      {{"SOLVER.EVAL_DATA=null"},
       2,
       ": SAVE_SAMPLES is written by the last evaluation, and there is none: it needs EVAL_DATA and an EVAL_INTERVAL "
       "above 0"},
      {{"SOLVER.EVAL_INTERVAL=-1"},
       2,
       ": SAVE_SAMPLES is written by the last evaluation, and there is none: it needs EVAL_DATA and an EVAL_INTERVAL "
       "above 0"},
      {{"SOLVER.MODEL.NETWORK={NAME: Mlp, INPUT_SIZE: 42}"}, 2, ": NETWORK names Mlp, which is no denoiser"},
      {{"SOLVER.MODEL={NAME: Classifier, NUM_CLASSES: 3, BACKBONE: {NAME: Mlp, INPUT_SIZE: 42}}"},
       2,
       ": MODEL names Classifier, which makes no samples"},
      {{"SOLVER.MODEL={NAME: Classifier, NUM_CLASSES: 3, BACKBONE: {NAME: UNet}}"}, 2, "UNet does not say how many"},
      {{"SOLVER.MODEL.NETWORK.NUM_CLASSES=2"}, 1, "with NUM_CLASSES 2 of NETWORK labels are 0 to 1"},
      {{"SOLVER.MODEL.NETWORK.IN_CHANNELS=3"}, 1, "UNet takes images [N, 3, H, W] as IN_CHANNELS says"},
      {{"SOLVER.MODEL.INPUT_KEY=label"}, 1, "the images 'label' are Long; they must be floating-point"},
  };
  for (const Bad& bad : all) {
    INFO(bad.message);
    const Job job(kTraining);
    const e2e::RunResult result = job.run(bad.changes, bad.exit_code);
    CHECK_MESSAGE(contains(result.err, bad.message), result.describe());
    const bool placed =
        contains(result.err, "job.yaml:") || contains(result.err, "command line '" + bad.changes.back().substr(0, 30));
    CHECK(placed);
    CHECK_FALSE(job.dir.has("work/samples"));
  }
}
