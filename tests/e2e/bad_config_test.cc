#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "e2e/run.h"

// Every configuration here is the valid one with one thing wrong: exit code 2, a message with the place, and
// nothing left behind.

namespace {

using e2e::replaced;

const char kValid[] = R"(ENV:
  SEED: 1
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 1
  TRAIN_DATA:
    NAME: Synthetic
    SIZE: 64
    BATCH_SIZE: 16
    NUM_WORKERS: 0
  MODEL:
    NAME: Classifier
    NUM_CLASSES: 10
    BACKBONE:
      NAME: Mlp
      INPUT_SIZE: 784
      HIDDEN: [32]
  OPTIMIZER:
    NAME: SGD
    LEARNING_RATE: 0.05
  TRAIN_HOOKS:
    - NAME: BackwardHook
    - NAME: LogHook
      LOG_INTERVAL: 2
)";

// "c.yaml:21" of the line that holds `part`.
std::string place(const std::string& text, std::string_view part) {
  const int line = e2e::line_of(text, part);
  REQUIRE(line > 0);
  return "c.yaml:" + std::to_string(line);
}

using FileList = std::vector<std::pair<std::string, std::string>>;

struct Attempt {
  e2e::TempDir dir;
  e2e::RunResult result;

  explicit Attempt(const std::string& text, const std::vector<std::string>& overrides = {}) {
    dir.write("c.yaml", text);
    run(overrides);
  }
  explicit Attempt(const FileList& files) {
    for (const auto& [name, text] : files) dir.write(name, text);
    run({});
  }

  void refused_with(const std::vector<std::string>& parts) const {
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    for (const std::string& part : parts) {
      INFO(part);
      CHECK(result.err.find(part) != std::string::npos);
    }
    CHECK(dir.list() == before_);
  }

 private:
  void run(const std::vector<std::string>& overrides) {
    before_ = dir.list();
    std::vector<std::string> arguments{"run", "c.yaml"};
    arguments.insert(arguments.end(), overrides.begin(), overrides.end());
    result = e2e::run_gantry(arguments, dir.path());
  }
  std::vector<std::string> before_;
};

}  // namespace

TEST_CASE("the configuration that all bad ones are made from is good") {
  e2e::TempDir dir;
  dir.write("c.yaml", kValid);
  const e2e::RunResult result = e2e::run_gantry({"check", "c.yaml"}, dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(dir.list() == std::vector<std::string>{"c.yaml"});
}

TEST_CASE("a misspelt key names its line and the key that was meant") {
  const std::string text = replaced(kValid, "LEARNING_RATE", "LERNING_RATE");
  Attempt(text).refused_with(
      {place(text, "LERNING_RATE") + ": unknown key 'LERNING_RATE' in optimizer SGD", "did you mean 'LEARNING_RATE'?"});
}

TEST_CASE("an unknown hook names its line and the hook that was meant") {
  const std::string text = replaced(kValid, "BackwardHook", "BackwardHok");
  Attempt(text).refused_with(
      {place(text, "BackwardHok") + ": unknown hook 'BackwardHok'", "did you mean 'BackwardHook'?", "LogHook"});
}

TEST_CASE("a value of the wrong type names what is expected and what is there") {
  const std::string text = replaced(kValid, "BATCH_SIZE: 16", "BATCH_SIZE: abc");
  Attempt(text).refused_with({place(text, "BATCH_SIZE") + ": BATCH_SIZE must be an integer, got the text 'abc'"});
}

TEST_CASE("a quoted number is refused where a number is expected") {
  const std::string text = replaced(kValid, "BATCH_SIZE: 16", "BATCH_SIZE: '16'");
  Attempt(text).refused_with({place(text, "BATCH_SIZE"), "'16' is quoted: write 16"});
}

TEST_CASE("a negative batch size names the bound and the value") {
  const std::string text = replaced(kValid, "BATCH_SIZE: 16", "BATCH_SIZE: -3");
  Attempt(text).refused_with({place(text, "BATCH_SIZE") + ": BATCH_SIZE must be >= ", "got -3"});
}

TEST_CASE("a missing required key is reported at its component") {
  const std::string text = replaced(kValid, "    LEARNING_RATE: 0.05\n", "");
  Attempt(text).refused_with({place(text, "NAME: SGD") + ": optimizer SGD needs LEARNING_RATE (a number"});
}

TEST_CASE("training without a hook that runs the backward pass is refused") {
  const std::string text = replaced(kValid, "    - NAME: BackwardHook\n", "");
  Attempt(text).refused_with({place(text, "TRAIN_HOOKS"), "- {NAME: BackwardHook}"});
}

TEST_CASE("a missing file is named") {
  const Attempt attempt(FileList{});
  attempt.refused_with({"c.yaml", "No such file"});
}

TEST_CASE("a folder instead of a file is refused") {
  Attempt(FileList{{"c.yaml/x", ""}}).refused_with({"c.yaml: this is a directory"});
}

TEST_CASE("an empty file is refused") {
  Attempt("").refused_with({"c.yaml:1", "empty"});
  Attempt("# only a comment\n").refused_with({"c.yaml:1", "empty"});
}

TEST_CASE("a file that is not YAML is refused with the line") {
  Attempt("SOLVER:\n  NAME: [unclosed\n").refused_with({"c.yaml:", "not valid YAML"});
  Attempt("SOLVER:\n\tNAME: x\n").refused_with({"c.yaml:2", "not valid YAML"});
  Attempt("just some words\n").refused_with({"c.yaml:1", "the text 'just some words'"});
}

TEST_CASE("a file with a NUL byte is refused with the line") {
  const std::string text = replaced(kValid, "0.05", std::string_view("0.0\0005", 5));
  REQUIRE(text.find('\0') != std::string::npos);
  Attempt(text).refused_with({place(text, "LEARNING_RATE"), "NUL"});
}

TEST_CASE("a duplicate key names both lines") {
  const std::string text =
      replaced(kValid, "    LEARNING_RATE: 0.05\n", "    LEARNING_RATE: 0.05\n    LEARNING_RATE: 1\n");
  Attempt(text).refused_with({place(text, "LEARNING_RATE: 1\n"), "LEARNING_RATE", "line 21"});
}

TEST_CASE("an alias bomb is refused within seconds") {
  std::string text = "A0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    std::string items;
    for (int k = 0; k < 10; ++k) items += (k ? ", " : "") + below;
    text += "A" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + items + "]\n";
  }
  const Attempt attempt(text);
  attempt.refused_with({"c.yaml:", "alias"});
  CHECK(attempt.result.seconds < 5);
}

TEST_CASE("a circle of bases is refused with its chain") {
  Attempt(FileList{{"c.yaml", "ENV: {SEED: 1}\n_BASE: d.yaml\n"}, {"d.yaml", "_BASE: c.yaml\n"}})
      .refused_with({"d.yaml:1", "c.yaml -> d.yaml -> c.yaml"});
}

TEST_CASE("a missing base is reported where it is named") {
  Attempt(std::string("_BASE: gone.yaml\n") + kValid).refused_with({"c.yaml:1", "gone.yaml", "No such file"});
}

TEST_CASE("an unset variable is named with its line") {
  const std::string text = replaced(kValid, "0.05", "${GANTRY_TEST_UNSET}");
  Attempt(text).refused_with({place(text, "GANTRY_TEST_UNSET"), "GANTRY_TEST_UNSET is not set"});
}

TEST_CASE("an override of an unknown key names the key that was meant") {
  Attempt(kValid, {"SOLVER.OPTIMIZER.LERNING_RATE=0.1"})
      .refused_with({"command line 'SOLVER.OPTIMIZER.LERNING_RATE=0.1'", "did you mean 'LEARNING_RATE'?"});
  Attempt(kValid, {"SOLVR.MAX_EPOCHS=3"}).refused_with({"command line", "did you mean 'SOLVER'?"});
  Attempt(kValid, {"SOLVER.TRAIN_HOOKS[LogHok].LOG_INTERVAL=3"}).refused_with({"did you mean 'LogHook'?"});
  Attempt(kValid, {"SOLVER.MAX_EPOCHS"}).refused_with({"command line 'SOLVER.MAX_EPOCHS'", "KEY=VALUE"});
}

TEST_CASE("two problems are reported at once in the order of their lines") {
  const std::string text =
      replaced(replaced(kValid, "BATCH_SIZE: 16", "BATCH_SIZE: -3"), "LEARNING_RATE", "LERNING_RATE");
  const Attempt attempt(text);
  attempt.refused_with({place(text, "BATCH_SIZE"), place(text, "LERNING_RATE")});
  CHECK(attempt.result.err.find("BATCH_SIZE") < attempt.result.err.find("LERNING_RATE"));
}

TEST_CASE("the JSON report of a refused configuration names file and line") {
  e2e::TempDir dir;
  const std::string text = replaced(kValid, "BATCH_SIZE: 16", "BATCH_SIZE: -3");
  dir.write("c.yaml", text);
  const e2e::RunResult result = e2e::run_gantry({"run", "--json", "c.yaml"}, dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 2);
  CHECK(e2e::json_value(result.last_line(), {"status"}) == "failed");
  CHECK(e2e::json_value(result.last_line(), {"error", "file"}) == "c.yaml");
  CHECK(e2e::json_number(result.last_line(), {"error", "line"}) == e2e::line_of(text, "BATCH_SIZE"));
}
