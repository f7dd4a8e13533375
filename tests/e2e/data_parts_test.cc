#include <cmath>
#include <string>
#include <vector>

#include "e2e/resume.h"

// Samplers and transforms in training runs: they stop and go on, and loader threads make no difference.

namespace {

using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;

const std::vector<std::string> kSamplers = {
    "{NAME: LoopSampler, SIZE: 40}",
    "{NAME: LoopSampler, FROM: 5, UNTIL: 60}",
    "{NAME: MultiFoldSampler, NUM_FOLDS: 2}",
    "{NAME: MultiFoldSampler, NUM_FOLDS: 2, SAMPLER: {NAME: LoopSampler, SIZE: 30}}",
    "{NAME: MixtureOfSamplers, SUB_SAMPLERS: [{NAME: DefaultSampler}, {NAME: SequentialSampler, FROM: 40}, "
    "{NAME: LoopSampler, UNTIL: 9}], PROBS: [2, 1, 1], SIZE: 48}",
};
const std::vector<std::string> kTransforms = {
    "[{NAME: RandomResizedCrop, SIZE: 8}]",
    "[{NAME: RandomResizedCrop, SIZE: [8, 8], SCALE: [0.3, 0.9], RATIO: [0.5, 2], INTERPOLATION: bicubic}, "
    "{NAME: RandomHorizontalFlip}]",
    "[{NAME: Resize, SIZE: 10, INTERPOLATION: bilinear, INPUT_KEY: [img], OUTPUT_KEY: [img], BACKEND: pillow}, "
    "{NAME: Compose, TRANSFORMS: [{NAME: RandomCrop, SIZE: 9}, {NAME: Compose, TRANSFORMS: [{NAME: "
    "RandomHorizontalFlip}, "
    "{NAME: CenterCrop, SIZE: 8}]}, {NAME: ImageToTensor}]}, {NAME: Identity}]",
};

std::vector<std::string> small(const std::string& key, const std::string& value) {
  return {"SOLVER.MAX_EPOCHS=3", "SOLVER.TRAIN_DATA." + key + "=" + value};
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::string& b) {
  a.push_back(b);
  return a;
}

void stop_and_go_on(const std::vector<std::string>& changes) {
  Job undisturbed, stopped;
  undisturbed.run(changes);
  stopped.run(changes + at_iteration(4), 75);
  std::vector<std::string> after_second = changes;
  for (const std::string& change : at_point("train.after_epoch", 2)) after_second.push_back(change);
  stopped.resume(after_second, 75);
  stopped.resume(changes);
  REQUIRE_FALSE(undisturbed.losses().empty());
  e2e::check_same_training(undisturbed, stopped);
}

}  // namespace

TEST_CASE("every sampler goes on in the middle of an epoch to the same bytes") {
  for (const std::string& sampler : kSamplers) {
    INFO(sampler);
    stop_and_go_on(small("SAMPLER", sampler));
  }
}

TEST_CASE("random transforms go on in the middle of an epoch to the same bytes") {
  for (const std::string& transforms : kTransforms) {
    INFO(transforms);
    stop_and_go_on(small("TRANSFORMS", transforms));
  }
}

TEST_CASE("samplers and random transforms give the same batches whatever the number of threads") {
  std::vector<std::vector<std::string>> all;
  for (const std::string& sampler : kSamplers) all.push_back(small("SAMPLER", sampler));
  for (const std::string& transforms : kTransforms) all.push_back(small("TRANSFORMS", transforms));
  std::vector<std::map<int64_t, std::string>> seen;
  {
    Job plain;
    plain.run({"SOLVER.MAX_EPOCHS=3"});
    seen.push_back(plain.losses());
  }
  for (const std::vector<std::string>& changes : all) {
    INFO(changes[1]);
    Job alone, threads;
    alone.run(changes + "SOLVER.TRAIN_DATA.NUM_WORKERS=0");
    threads.run(changes + "SOLVER.TRAIN_DATA.NUM_WORKERS=3");
    CHECK(alone.losses() == threads.losses());
    // Were one of them ignored, its losses would be those of another run here.
    for (const auto& other : seen) CHECK(alone.losses() != other);
    seen.push_back(alone.losses());
  }
}

TEST_CASE("an epoch of a sampler has as many batches as its indices make") {
  // Batches of 7.
  const std::vector<std::pair<std::string, std::size_t>> cases = {{"{NAME: LoopSampler, SIZE: 40}", 6},
                                                                  {"{NAME: MultiFoldSampler, NUM_FOLDS: 3}", 29},
                                                                  {"{NAME: SequentialSampler, FROM: 60}", 1}};
  for (const auto& [sampler, batches] : cases) {
    INFO(sampler);
    Job job;
    job.run({"SOLVER.MAX_EPOCHS=1", "SOLVER.TRAIN_DATA.SAMPLER=" + sampler});
    CHECK(job.losses().size() == batches);
  }
}
