#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "e2e/run.h"

// Plugin code that throws ends the run with exit code 1 and a message that says who, where and when. The hooks that
// have begun are told. The components are those of tests/fixtures/throwing, whose plugin calls itself
// test-throwing 3.1.4; `test/Witness` writes down how its run began and ended.

namespace {

// Four iterations an epoch, two epochs, an evaluation of four after each.
const char kJob[] = R"(SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 2
  TRAIN_DATA: {NAME: test/ThrowingDataset, BATCH_SIZE: 8, SHUFFLE: false}
  EVAL_DATA: {NAME: test/ThrowingDataset, BATCH_SIZE: 8}
  MODEL: {NAME: test/ThrowingModel}
  OPTIMIZER: {NAME: SGD, LEARNING_RATE: 0.05}
  METRICS: [{NAME: test/ThrowingMetric}]
  TRAIN_HOOKS:
    - {NAME: BackwardHook}
    - {NAME: test/Witness, FILE: before.txt, PRIORITY: 50}
    - {NAME: test/Throwing, PRIORITY: 60}
    - {NAME: test/Throwing, PRIORITY: 70}
    - {NAME: test/Witness, FILE: after.txt, PRIORITY: 80}
  EVAL_HOOKS:
    - {NAME: test/Throwing, PRIORITY: 60}
)";

const char kHook[] = "test/Throwing, PRIORITY: 60";
const char kEvalHook[] = "EVAL_HOOKS:\n    - {NAME: test/Throwing, PRIORITY: 60";

std::string cause(const std::string& type) {
  if (type == "c10") return "kaboom of c10";
  if (type == "int") return "an exception that carries no message";
  return type == "config_error" ? "kaboom of the configuration" : "kaboom of std";
}

/// A run of the job in which one component, found by a part of its text, throws.
class Thrown {
 public:
  Thrown(std::string_view component, const std::string& point, const std::string& type = "std", int at = 0,
         std::string text = kJob)
      : type_(type) {
    const std::string keys = ", POINT: " + point + ", TYPE: " + type + ", AT: " + std::to_string(at);
    text = e2e::replaced(std::move(text), component, std::string(component) + keys);
    line_ = e2e::line_of(text, keys);
    dir_.write("c.yaml", text);
    result = e2e::run_gantry({"run", "--json", "--plugin-dir", GANTRY_THROWING_DIR, "c.yaml"}, dir_.path());
  }

  /// The message names the component, its plugin and the point, and its line in the file where `with_line`; the
  /// report holds the same. `when`: "train iteration 2", or empty outside of the loops.
  void check_failed(const std::string& component, const std::string& point, const std::string& when,
                    bool with_line = true) const {
    INFO(result.describe());
    CHECK(result.exit_code == 1);
    const std::string plugin = "test-throwing 3.1.4 (" GANTRY_THROWING_DIR "/test-throwing.so)";
    const std::string who = component + " of plugin " + plugin + " failed in " + point;
    // The place stands before it, once.
    const std::string begin = with_line ? place() : "";
    const std::string sentence = begin + who + (when.empty() ? "" : " at " + when) + ": ";
    for (const std::string& text : {result.err, json({"error", "what"})}) {
      const std::size_t at = text.find(sentence);
      INFO("no '" << sentence << "' in\n" << text);
      REQUIRE(at != std::string::npos);
      CHECK(text.find(cause(type_), at) != std::string::npos);
      if (with_line) CHECK(text.find(place()) == text.rfind(place()));
    }
    CHECK(json({"status"}) == "failed");
    CHECK(json({"error", "plugin"}) == plugin);
    CHECK(json({"error", "point"}) == point);
    CHECK(json({"error", "iteration"}) == (when.empty() ? "null" : when.substr(when.rfind(' ') + 1)));
    if (with_line) CHECK(json({"error", "line"}) == std::to_string(line_));
    check_wording();
  }

  /// A configuration error: exit code 2 and the place.
  void check_refused() const {
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    for (const std::string& text : {result.err, json({"error", "what"})}) {
      INFO(text);
      CHECK(text.find(place()) != std::string::npos);
      CHECK(text.find(place()) == text.rfind(place()));
      CHECK(text.find(cause("config_error")) != std::string::npos);
    }
    CHECK(json({"error", "file"}) == "c.yaml");
    CHECK(json({"error", "line"}) == std::to_string(line_));
    check_wording();
  }

  /// What a witness saw, without the messages; empty when it saw nothing.
  std::vector<std::string> seen(const std::string& witness) const {
    std::vector<std::string> calls;
    if (!dir_.has(witness)) return calls;
    std::istringstream in(dir_.read(witness));
    for (std::string line; std::getline(in, line);)
      calls.push_back(line.starts_with("on_exception") ? "on_exception" : line);
    return calls;
  }

  bool left(const std::string& file) const { return dir_.has(file); }

  e2e::RunResult result;

 private:
  std::string place() const { return "c.yaml:" + std::to_string(line_) + ": "; }
  std::string json(const std::vector<std::string>& path) const {
    return e2e::json_value(result.last_line(), path).value_or("(absent)");
  }

  // No names of C++, no stack traces.
  void check_wording() const {
    for (const std::string word :
         {"::", "runtime_error", "c10Error", "Exception raised from", "frame #", "terminate"}) {
      INFO(word);
      CHECK((result.out + result.err).find(word) == std::string::npos);
    }
  }

  e2e::TempDir dir_;
  std::string type_;
  int line_ = 0;
};

using Calls = std::vector<std::string>;
const Calls kFailed = {"before_solve", "on_exception", "after_solve failed"};

}  // namespace

TEST_CASE("the job in which components throw runs to its end when none does") {
  const Thrown run(kHook, "never");
  INFO(run.result.describe());
  CHECK(run.result.exit_code == 0);
  CHECK(e2e::json_value(run.result.last_line(), {"error"}) == "null");
  CHECK(e2e::json_number(run.result.last_line(), {"iteration"}) == 8);
  CHECK(run.seen("before.txt") == Calls{"before_solve", "after_solve done"});
  CHECK(run.seen("after.txt") == Calls{"before_solve", "after_solve done"});
}

TEST_CASE("an exception from any point of a hook names hook and plugin and point and iteration") {
  struct Case {
    std::string point;
    int at;
    std::string when, type;
  };
  const std::vector<Case> cases = {
      {"before_epoch", 4, "train iteration 4", "std"}, {"before_all_iter", 4, "train iteration 4", "std"},
      {"before_iter", 2, "train iteration 2", "std"},  {"before_iter", 2, "train iteration 2", "c10"},
      {"before_iter", 2, "train iteration 2", "int"},  {"after_iter", 5, "train iteration 5", "std"},
      {"after_iter", 5, "train iteration 5", "c10"},   {"before_step", 2, "train iteration 2", "std"},
      {"before_step", 2, "train iteration 2", "int"},  {"after_step", 2, "train iteration 2", "std"},
      {"after_step", 2, "train iteration 2", "c10"},   {"after_all_iter", 0, "train iteration 4", "std"},
      {"evaluated", 0, "train iteration 4", "std"},    {"evaluated", 0, "train iteration 4", "int"},
      {"after_epoch", 0, "train iteration 4", "std"},  {"after_epoch", 0, "train iteration 4", "c10"}};
  for (const Case& thrown : cases) {
    CAPTURE(thrown.point);
    CAPTURE(thrown.type);
    const Thrown run(kHook, thrown.point, thrown.type, thrown.at);
    run.check_failed("hook test/Throwing", thrown.point, thrown.when);
    CHECK(run.seen("before.txt") == kFailed);
    CHECK(run.seen("after.txt") == kFailed);
  }
}

TEST_CASE("an exception from a hook of an evaluation counts the iterations of the evaluation") {
  for (const std::string point : {"before_iter", "after_iter"}) {
    CAPTURE(point);
    const Thrown run(kEvalHook, point, "std", 3);
    // The third instance of its name, in a line of its own.
    INFO(run.result.describe());
    CHECK(run.result.exit_code == 1);
    CHECK(run.result.err.find("hook test/Throwing#3 of plugin test-throwing 3.1.4") != std::string::npos);
    CHECK(run.result.err.find("failed in " + point + " at eval iteration 3: kaboom of std") != std::string::npos);
    CHECK(run.seen("before.txt") == kFailed);
  }
}

TEST_CASE("after a failed before_solve only the hooks that had begun are ended") {
  for (const std::string type : {"std", "c10", "int"}) {
    CAPTURE(type);
    const Thrown run(kHook, "before_solve", type);
    run.check_failed("hook test/Throwing", "before_solve", "");
    CHECK(run.seen("before.txt") == kFailed);
    CHECK(run.seen("after.txt").empty());
  }
}

TEST_CASE("an exception from after_solve fails the run and the later hooks still end") {
  for (const std::string type : {"std", "int"}) {
    CAPTURE(type);
    const Thrown run(kHook, "after_solve", type);
    run.check_failed("hook test/Throwing", "after_solve", "");
    CHECK(run.seen("before.txt") == Calls{"before_solve", "after_solve done"});
    CHECK(run.seen("after.txt") == Calls{"before_solve", "after_solve done"});
  }
}

TEST_CASE("the first of several exceptions is the one reported and the others are logged") {
  const std::string second = "test/Throwing, PRIORITY: 70";
  for (const std::string point : {"after_solve", "on_exception"}) {
    CAPTURE(point);
    const std::string text = e2e::replaced(kJob, second, second + ", POINT: " + point + ", TYPE: c10");
    const Thrown run(kHook, "after_iter", "std", 1, text);
    run.check_failed("hook test/Throwing", "after_iter", "train iteration 1");
    CHECK(run.result.err.find("hook test/Throwing#2 of plugin test-throwing 3.1.4") != std::string::npos);
    CHECK(run.result.err.find("failed in " + point) != std::string::npos);
    CHECK(run.result.err.find("kaboom of c10") != std::string::npos);
    CHECK(run.result.last_line().find("kaboom of c10") == std::string::npos);
    CHECK(run.seen("after.txt") == kFailed);
  }
}

TEST_CASE("a configuration error from a constructor is exit code 2 with its line and leaves nothing") {
  for (const std::string component :
       {"test/Throwing, PRIORITY: 60", "TRAIN_DATA: {NAME: test/ThrowingDataset", "test/ThrowingModel"}) {
    CAPTURE(component);
    const Thrown run(component, "constructor", "config_error");
    run.check_refused();
    CHECK(run.seen("before.txt").empty());
    CHECK_FALSE(run.left("work"));
  }
}

TEST_CASE("a configuration error in the middle of a run ends it in order") {
  const Thrown run(kHook, "before_iter", "config_error", 2);
  run.check_refused();
  CHECK(run.seen("before.txt") == kFailed);
  CHECK(run.seen("after.txt") == kFailed);
}

TEST_CASE("an exception from a constructor is exit code 1 with plugin and line and leaves nothing") {
  struct Case {
    std::string component, text, type;
  };
  const std::vector<Case> cases = {{"hook test/Throwing", kHook, "std"},
                                   {"hook test/Throwing", kHook, "c10"},
                                   {"hook test/Throwing", kHook, "int"},
                                   {"dataset test/ThrowingDataset", "TRAIN_DATA: {NAME: test/ThrowingDataset", "c10"},
                                   {"dataset test/ThrowingDataset", "EVAL_DATA: {NAME: test/ThrowingDataset", "int"},
                                   {"model test/ThrowingModel", "test/ThrowingModel", "std"},
                                   {"metric test/ThrowingMetric", "test/ThrowingMetric", "std"}};
  for (const Case& thrown : cases) {
    CAPTURE(thrown.text);
    CAPTURE(thrown.type);
    const Thrown run(thrown.text, "constructor", thrown.type);
    run.check_failed(thrown.component, "constructor", "");
    CHECK(run.seen("before.txt").empty());
    CHECK_FALSE(run.left("work"));
  }
}

TEST_CASE("an exception from a dataset names the samples and the iteration whatever thread it came from") {
  for (const std::string workers : {"0", "2"}) {
    for (const std::string type : {"std", "c10", "int"}) {
      CAPTURE(workers);
      CAPTURE(type);
      const std::string text = e2e::replaced(kJob, "SHUFFLE: false", "SHUFFLE: false, NUM_WORKERS: " + workers);
      // Sample 19 is in the third batch of eight.
      const Thrown run("TRAIN_DATA: {NAME: test/ThrowingDataset", "get", type, 19, text);
      run.check_failed("dataset test/ThrowingDataset", "get_batch", "train iteration 2");
      CHECK(run.result.err.find("samples 16, 17, 18, 19, 20, 21, 22, 23: ") != std::string::npos);
      CHECK(run.seen("before.txt") == kFailed);
      CHECK(run.seen("after.txt") == kFailed);
    }
  }
  const Thrown evaluated("EVAL_DATA: {NAME: test/ThrowingDataset", "get", "std", 19);
  evaluated.check_failed("dataset test/ThrowingDataset", "get_batch", "eval iteration 2");
  const Thrown unmeasured("TRAIN_DATA: {NAME: test/ThrowingDataset", "size", "std");
  unmeasured.check_failed("dataset test/ThrowingDataset", "size", "");
}

TEST_CASE("an exception from a transform names it and the samples") {
  const std::string text = e2e::replaced(
      kJob, "SHUFFLE: false", "SHUFFLE: false, NUM_WORKERS: 1, TRANSFORMS: [{NAME: test/ThrowingTransform}]");
  const Thrown run("test/ThrowingTransform", "apply", "c10", 0, text);
  run.check_failed("transform test/ThrowingTransform", "apply_batch", "train iteration 0");
  CHECK(run.seen("after.txt") == kFailed);
}

TEST_CASE("an exception from a model or a metric names it and the iteration") {
  const Thrown training("test/ThrowingModel", "forward", "c10", 3);
  training.check_failed("model test/ThrowingModel", "forward", "train iteration 3");
  CHECK(training.seen("after.txt") == kFailed);
  const Thrown evaluating("test/ThrowingModel", "forward", "int", 6);
  evaluating.check_failed("model test/ThrowingModel", "forward", "eval iteration 2");

  for (const auto& [point, when] : std::vector<std::pair<std::string, std::string>>{
           {"reset", "eval iteration 0"}, {"update", "eval iteration 0"}, {"compute", "eval iteration 4"}}) {
    CAPTURE(point);
    const Thrown run("test/ThrowingMetric", point);
    run.check_failed("metric test/ThrowingMetric", point, when, /*with_line=*/false);
    CHECK(run.seen("after.txt") == kFailed);
  }
}
