#include <cmath>
#include <regex>

#include "hooks/odd_job.h"

// What ThroughputHook says.

namespace {

using e2e::contains;
using e2e::Job;
using e2e::operator+;
using e2e::with_hook;

std::string throughput(const std::string& keys) { return with_hook("{NAME: ThroughputHook" + keys + "}"); }

/// The numbers in every place of `text` that fits; one for each group.
std::vector<std::vector<double>> numbers(const std::string& text, const std::string& pattern) {
  std::vector<std::vector<double>> all;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    all.emplace_back();
    for (std::size_t group = 1; group < at->size(); ++group) all.back().push_back(std::stod(at->str(group)));
  }
  return all;
}

const std::string kNumber = "([0-9.e+-]+)";

}  // namespace

TEST_CASE("throughput is told at its interval and at the end") {
  Job job(e2e::kOddJob);
  const e2e::RunResult result = job.run({throughput(", LOG_INTERVAL: 4")});
  const auto lines = numbers(result.err, "iteration " + kNumber + ": " + kNumber + " samples/s");
  REQUIRE(lines.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(lines[i][0] == 4.0 * static_cast<double>(i + 1));
    CHECK(lines[i][1] > 0);
  }
  const auto all = numbers(result.err, "training in all: " + kNumber + " samples/s");
  REQUIRE(all.size() == 1);
  CHECK(all[0][0] > 0);
  CHECK_FALSE(contains(result.err, "MFU"));  // nothing is known of this CPU

  Job silent(e2e::kOddJob);
  const e2e::RunResult end = silent.run({throughput(", LOG_INTERVAL: 0")});
  CHECK(numbers(end.err, "iteration " + kNumber + ": " + kNumber + " samples/s").empty());
  CHECK(numbers(end.err, "training in all: " + kNumber + " samples/s").size() == 1);
}

TEST_CASE("operations are three times those of a sample's forward pass and MFU is their share of the peak") {
  // A linear layer of 64 inputs and 10000 outputs, one of 10000 and 3: 2 * (64 * 10000 + 10000 * 3) operations.
  Job job(e2e::kSmallJob);
  const e2e::RunResult result = job.run({"SOLVER.TRAIN_DATA.SHAPE=[1, 8, 8]",
                                         "SOLVER.MODEL.BACKBONE={NAME: test/DropoutMlp, INPUT_SIZE: 64, HIDDEN: 10000}",
                                         throughput(", LOG_INTERVAL: 5, PEAK_TFLOPS: 0.5")});
  const auto lines =
      numbers(result.err, ": " + kNumber + " samples/s, " + kNumber + " TFLOP/s, MFU " + kNumber + " % of 0.5000");
  REQUIRE(lines.size() == 5);  // 20 iterations, and the end
  for (const auto& line : lines) {
    const double tflops = line[0] * 3 * 2 * (64.0 * 10000 + 10000 * 3) / 1e12;
    CHECK(line[1] / tflops == doctest::Approx(1).epsilon(0.01));
    CHECK(line[2] / (100 * tflops / 0.5) == doctest::Approx(1).epsilon(0.01));
  }
}

TEST_CASE("evaluations are no part of the time of training") {
  // Five evaluations, of one batch each that takes 0.4 seconds to come.
  Job job(e2e::kSmallJob);
  const e2e::RunResult result = job.run(
      {throughput(", LOG_INTERVAL: 0"), "SOLVER.TRAIN_DATA.SHAPE=[1, 8, 8]", "SOLVER.MODEL.BACKBONE.INPUT_SIZE=64",
       "SOLVER.EVAL_DATA={NAME: test/SlowImages, SIZE: 1, MS: 400, BATCH_SIZE: 1, NUM_WORKERS: 0}",
       "SOLVER.EVAL_INTERVAL=2 iters", "SOLVER.MAX_EPOCHS=1"});
  const auto seconds = numbers(result.err, "beside " + kNumber + " s of training");
  REQUIRE(seconds.size() == 1);
  CHECK(seconds[0][0] < 0.4);
  CHECK(result.seconds > 2);
}

TEST_CASE("a table at the end has every hook with its time") {
  Job job(e2e::kOddJob);
  const e2e::RunResult result = job.run({throughput(", LOG_INTERVAL: 0")});
  for (const char* name :
       {"BackwardHook", "ThroughputHook", "CheckpointHook", "test/LossTrace", "test/WeightsDigest"}) {
    INFO(name);
    const auto times = numbers(result.err, std::string("  ") + name + " +" + kNumber + " s");
    REQUIRE(times.size() == 1);
    CHECK(times[0][0] >= 0);
  }
  CHECK(numbers(result.err, "  test/WeightsDigest +" + kNumber + " s")[0][0] > 0);
}

TEST_CASE("counting throughput changes nothing in what is trained") {
  Job with(e2e::kJob), without(e2e::kJob);
  const std::string short_run = "SOLVER.MAX_EPOCHS=2";
  without.run({short_run});
  with.run({short_run, "SOLVER.EVAL_HOOKS=[{NAME: ThroughputHook}]"});
  e2e::check_same_training(without, with);
  Job train(e2e::kJob);
  train.run({short_run,
             "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, ACCUMULATE_STEP: 3}, {NAME: LrHook, WARMUP_EPOCHS: 1}, "
             "{NAME: ThroughputHook, LOG_INTERVAL: 3}]"});
  e2e::check_same_training(without, train);
}
