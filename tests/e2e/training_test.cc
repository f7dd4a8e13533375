#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "e2e/probe.h"

// That a run computes what it should, and the same every time.

namespace {

using e2e::Training;

const char kQuickstart[] = GANTRY_SOURCE_DIR "/configs/quickstart.yaml";

std::vector<std::string> short_quickstart(std::vector<std::string> changes) {
  const std::vector<std::string> common{e2e::kDigest, "SOLVER.WORK_DIR=work", "SOLVER.MAX_EPOCHS=1",
                                        "SOLVER.LIMIT_TRAIN_BATCHES=60", "SOLVER.LIMIT_EVAL_BATCHES=1"};
  changes.insert(changes.end(), common.begin(), common.end());
  return changes;
}

bool all_different(const std::vector<std::string>& lines) {
  std::vector<std::string> sorted = lines;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

}  // namespace

TEST_CASE("the same seed gives the same weights at every step in another process and another seed gives others") {
  const Training first(short_quickstart({}), 0, kQuickstart), second(short_quickstart({}), 0, kQuickstart);
  const Training other(short_quickstart({"ENV.SEED=7"}), 0, kQuickstart);
  REQUIRE(first.digests().size() == 60);
  CHECK(all_different(first.digests()));
  CHECK(first.digests() == second.digests());
  REQUIRE(other.digests().size() == 60);
  for (std::size_t i = 0; i < 60; ++i) CHECK(first.digests()[i] != other.digests()[i]);
}

TEST_CASE("the number of loader threads changes no weight") {
  const Training none(short_quickstart({"SOLVER.TRAIN_DATA.NUM_WORKERS=0"}), 0, kQuickstart);
  const Training one(short_quickstart({"SOLVER.TRAIN_DATA.NUM_WORKERS=1"}), 0, kQuickstart);
  const Training three(short_quickstart({"SOLVER.TRAIN_DATA.NUM_WORKERS=3"}), 0, kQuickstart);
  REQUIRE(none.digests().size() == 60);
  CHECK(none.digests() == one.digests());
  CHECK(none.digests() == three.digests());
}

TEST_CASE("the quickstart learns to tell clothes apart") {
  // One thread: beside other tests two of them would wait for each other.
  const Training run({"SOLVER.WORK_DIR=work", "ENV.NUM_THREADS=1"}, 0, kQuickstart);
  INFO(run.result.describe());
  CHECK(run.number({"metrics", "eval", "acc@1"}) >= 0.86);
  CHECK(run.number({"epoch"}) == 6);
  CHECK(run.number({"iteration"}) == 6 * 469);
}

TEST_CASE("evaluations change no weight although the model draws random numbers in them") {
  const Training with({e2e::kDigest, e2e::kEvalData, "SOLVER.EVAL_INTERVAL=1"});
  const Training without({e2e::kDigest, e2e::kEvalData, "SOLVER.EVAL_INTERVAL=-1"});
  CHECK(with.number({"metrics", "eval", "loss"}) > 0);
  CHECK_FALSE(e2e::json_value(without.result.last_line(), {"metrics", "eval"}).has_value());
  REQUIRE(with.digests().size() == 20);
  CHECK(all_different(with.digests()));
  CHECK(with.digests() == without.digests());
}

TEST_CASE("accumulation over ten batches gives the weights of batches that are four times as large") {
  // Ten batches of 7, the last one of 3, are windows of 28, 28 and 10 samples.
  const std::vector<std::string> common{e2e::kValues, "SOLVER.TRAIN_DATA.SHUFFLE=false",
                                        "SOLVER.MODEL.BACKBONE={NAME: Mlp, INPUT_SIZE: 16, HIDDEN: [8]}"};
  std::vector<std::string> accumulated = common, big = common;
  accumulated.push_back("SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=4");
  big.push_back("SOLVER.TRAIN_DATA.BATCH_SIZE=28");
  const Training small_batches(accumulated), big_batches(big);
  const auto a = e2e::values_of(small_batches.digests()), b = e2e::values_of(big_batches.digests());
  REQUIRE(a.size() == 6);
  REQUIRE(a[0].size() == 16 * 8 + 8 + 8 * 3 + 3);
  CHECK(e2e::largest_difference(a, b) < 1e-6);
  for (std::size_t i = 1; i < a.size(); ++i) CHECK(e2e::largest_difference({a[i - 1]}, {a[i]}) > 1e-3);
}

TEST_CASE("a third party's solver goes back to a saved state and trains on to the same bits") {
  const std::string solver = "SOLVER.NAME=test/RoundTripSolver", file = "SOLVER.FILE=states.txt";
  for (const char* backbone :
       {"{NAME: test/DropoutMlp, INPUT_SIZE: 16}", "{NAME: ConvNet, IMAGE_SIZE: [4, 4], WIDTHS: [4]}"}) {
    const Training run({solver, file, std::string("SOLVER.MODEL.BACKBONE=") + backbone});
    std::map<std::string, std::string> at;
    for (const std::string& line : run.lines("states.txt")) {
      const std::size_t space = line.find(' ');
      at[line.substr(0, space)] = line.substr(space + 1);
    }
    INFO(run.dir.read("states.txt"));
    CHECK(at["start"] != at["saved"]);
    CHECK(at["saved"] != at["on"]);
    CHECK(at["back"] == at["saved"]);
    CHECK(at["again"] == at["on"]);
  }
}

TEST_CASE("a state that does not fit is refused with all differences and changes nothing") {
  const Training run({"SOLVER.NAME=test/RoundTripSolver", "SOLVER.FILE=states.txt"});
  const std::string text = run.dir.read("states.txt");
  std::string before, after;
  for (const std::string& line : e2e::lines_of(text)) {
    if (line.starts_with("before ")) before = line.substr(7);
    if (line.starts_with("after ")) after = line.substr(6);
  }
  INFO(text);
  CHECK_FALSE(before.empty());
  CHECK(before == after);
  for (const char* part : {
           "missing: model/head.bias\n",
           "model/backbone.layer.weight: float32 [3, 2] in the checkpoint, float32 [32, 16] here\n",
           "model/head.weight: float64 [3, 32] in the checkpoint, float32 [3, 32] here\n",
           "unexpected: model/no_such\n",
           "optimizer/head.bias/momentum_buffer: float32 [7] in the checkpoint, float32 [3] here\n",
           "optimizer/head.weight/momentum_buffer: float64 [3, 32] in the checkpoint, float32 [3, 32] here\n",
           "unexpected: optimizer/no_such/momentum_buffer\n",
           "'trainer/step'",
       }) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("floating point operations are counted as the model runs them and counting changes no weight") {
  struct Case {
    const char* backbone;
    int64_t flops;
  };
  // A multiply-add is two; 3 classes. Linear 16 to 8 to 3; convolution of 9 values at 4 x 4 places to 4 channels, then
  // 16 features to 3.
  for (const Case& c : {Case{"{NAME: Mlp, INPUT_SIZE: 16, HIDDEN: [8]}", 2 * (16 * 8 + 8 * 3)},
                        Case{"{NAME: ConvNet, IMAGE_SIZE: [4, 4], WIDTHS: [4]}", 2 * (4 * 4 * 4 * 9 + 16 * 3)}}) {
    const Training run(
        {"SOLVER.NAME=test/FlopsSolver", "SOLVER.FILE=flops.txt", std::string("SOLVER.MODEL.BACKBONE=") + c.backbone});
    REQUIRE(run.lines("flops.txt").size() == 1);
    CHECK(run.lines("flops.txt")[0] == std::to_string(c.flops) + " " + std::to_string(c.flops));
  }
  const std::string dropout = "SOLVER.MODEL.BACKBONE={NAME: test/DropoutMlp, INPUT_SIZE: 16}";
  const Training counted({e2e::kDigest, dropout, "SOLVER.NAME=test/FlopsSolver", "SOLVER.FILE=flops.txt"});
  const Training plain({e2e::kDigest, dropout});
  REQUIRE(!plain.digests().empty());
  CHECK(counted.digests() == plain.digests());
}
