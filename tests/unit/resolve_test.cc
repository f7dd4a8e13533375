#include <doctest/doctest.h>

#include <deque>

#include "config_files.h"
#include "gantry/catalogue.h"

using gantry::ComponentInfo;
using gantry::Config;
using gantry::ConfigError;
using gantry::Interval;

namespace {

class FakeCatalogue : public gantry::Catalogue {
 public:
  FakeCatalogue() {
    auto& solver = add("solver", "Train");
    solver.add<std::string>("WORK_DIR", "work").no_effect_on_result();
    solver.add<int64_t>("MAX_EPOCHS").at_least(1).help("How often the data is seen.");
    solver.optional_component<gantry::Dataset>("TRAIN_DATA");
    solver.component<gantry::Model>("MODEL").help("What is trained.");
    solver.optional_component<gantry::Optimizer>("OPTIMIZER");
    solver.components<gantry::Hook>("HOOKS");
    solver.components<gantry::Hook>("TRAIN_HOOKS");
    solver.components<gantry::Hook>("EVAL_HOOKS");
    auto& data = add("dataset", "Numbers");
    data.add<int64_t>("BATCH_SIZE").at_least(1);
    data.add<bool>("SHUFFLE", true);
    auto& model = add("model", "Net");
    model.component_or<gantry::Loss>("LOSS", "CrossEntropy");
    model.add<std::vector<int64_t>>("HIDDEN", {}).at_least(1);
    add("loss", "CrossEntropy").add<double>("SMOOTHING", 0.5);
    auto& sgd = add("optimizer", "SGD");
    sgd.add<double>("LEARNING_RATE").above(0).help("Step size.");
    sgd.add<double>("MOMENTUM", 0.0);
    add("hook", "BackwardHook").triggers_backward();
    auto& log = add("hook", "LogHook");
    log.add<Interval>("LOG_INTERVAL", {50, Interval::Unit::iterations}).unit("iterations").no_effect_on_result();
    log.optional<std::string>("PREFIX");
    add("hook", "Checkpoint").single_instance();
  }

  const ComponentInfo* find(const std::string& kind, const std::string& name, const std::string& pinned,
                            const gantry::SourceLocation& asked_by) override {
    last_pinned = pinned;
    if (name == "Broken") throw ConfigError(asked_by, "broken.so needs another LibTorch");
    for (const ComponentInfo& info : infos_) {
      if (info.kind == kind && info.name == name) return &info;
    }
    return nullptr;
  }
  std::vector<std::string> names(const std::string& kind) const override {
    std::vector<std::string> out;
    for (const ComponentInfo& info : infos_) {
      if (info.kind == kind) out.push_back(info.name);
    }
    return out;
  }
  std::string hint(const std::string& kind, const std::string& name) const override {
    return name == "SGD" ? "SGD is an optimizer" : "";
  }

  std::string last_pinned;

 private:
  gantry::Parameters& add(const std::string& kind, const std::string& name) {
    infos_.push_back({});
    infos_.back().kind = kind;
    infos_.back().name = name;
    return infos_.back().parameters;
  }
  std::deque<ComponentInfo> infos_;
};

struct Resolved {
  explicit Resolved(const Config& composed) { config = gantry::resolve(composed, catalogue, problems); }
  explicit Resolved(const std::string& text) : Resolved(file_config("/etc/a.yaml", text)) {}

  const Config& solver() const { return *config.find("SOLVER"); }
  std::string text() const { return text_of(problems); }
  bool says(const std::string& part) const { return text().find(part) != std::string::npos; }

  FakeCatalogue catalogue;
  std::vector<ConfigError> problems;
  Config config;
};

// Valid but for what is added: `rest` goes into SOLVER.
std::string solver_with(const std::string& rest) {
  return "ENV: {SEED: 1}\nSOLVER: {NAME: Train, MAX_EPOCHS: 2, MODEL: {NAME: Net}" + (rest.empty() ? "" : ", " + rest) +
         "}";
}

}  // namespace

TEST_CASE("every declared parameter is there afterwards with its default") {
  const Resolved r(solver_with("HOOKS: [{NAME: LogHook, LOG_INTERVAL: 5}, {NAME: LogHook}]"));
  REQUIRE(r.text() == "");
  CHECK(r.config.find("ENV")->get<int64_t>("SEED") == 1);
  CHECK(r.config.find("ENV")->get<std::string>("DEVICE") == "auto");
  const Config& solver = r.solver();
  CHECK(solver.kind() == "solver");
  CHECK(solver.name() == "Train");
  CHECK(solver.path() == "SOLVER");
  CHECK(solver.get<std::string>("WORK_DIR") == "work");
  CHECK_FALSE(solver.has("OPTIMIZER"));
  CHECK(solver.find("OPTIMIZER") != nullptr);
  CHECK(solver.get<std::vector<Config>>("TRAIN_HOOKS").empty());
  const auto hooks = solver.get<std::vector<Config>>("HOOKS");
  REQUIRE(hooks.size() == 2);
  CHECK(hooks[0].get<Interval>("LOG_INTERVAL").count == 5);
  CHECK(hooks[1].get<Interval>("LOG_INTERVAL").count == 50);
  CHECK(hooks[1].path() == "SOLVER.HOOKS[1]");
  CHECK_FALSE(hooks[1].has("PREFIX"));
  const Config loss = solver.get<Config>("MODEL").get<Config>("LOSS");
  CHECK(loss.name() == "CrossEntropy");
  CHECK(loss.path() == "SOLVER.MODEL.LOSS");
  CHECK(loss.get<double>("SMOOTHING") == 0.5);
  CHECK(loss.where().str() == "/etc/a.yaml:2");
}

TEST_CASE("keys come in the order of their declaration in one spelling per value") {
  const Resolved r("SOLVER: {MODEL: {HIDDEN: 0032, NAME: Net}, MAX_EPOCHS: +2, WORK_DIR: 7, NAME: Train}");
  REQUIRE(r.text() == "");
  CHECK(r.solver().yaml() ==
        "NAME: Train\nWORK_DIR: '7'\nMAX_EPOCHS: 2\nTRAIN_DATA: null\nMODEL:\n  NAME: Net\n  LOSS:\n"
        "    NAME: CrossEntropy\n    SMOOTHING: 0.5\n  HIDDEN: [32]\nOPTIMIZER: null\nHOOKS: []\nTRAIN_HOOKS: []\n"
        "EVAL_HOOKS: []\n");
}

TEST_CASE("a resolved configuration resolves to itself") {
  const Resolved once(solver_with("HOOKS: [{NAME: LogHook, LOG_INTERVAL: 90 s}]"));
  REQUIRE(once.text() == "");
  const Resolved twice(once.config);
  CHECK(twice.text() == "");
  CHECK(twice.config.yaml() == once.config.yaml());
}

TEST_CASE("a misspelt key names the one that was meant and is not reported as missing too") {
  const Resolved r(solver_with("OPTIMIZER: {NAME: SGD, LERNING_RATE: 1}"));
  CHECK(r.text() ==
        "/etc/a.yaml:2: unknown key 'LERNING_RATE' in optimizer SGD; did you mean 'LEARNING_RATE'? "
        "known: LEARNING_RATE, MOMENTUM");
}

TEST_CASE("an unknown name lists the known ones and the catalogue's hint") {
  const Resolved r(solver_with("HOOKS: [{NAME: BackwardHok}, {NAME: SGD}]"));
  CHECK(
      r.says("/etc/a.yaml:2: unknown hook 'BackwardHok'; did you mean 'BackwardHook'? "
             "known: BackwardHook, LogHook, Checkpoint"));
  CHECK(r.says("unknown hook 'SGD'; known: BackwardHook, LogHook, Checkpoint\nSGD is an optimizer"));
}

TEST_CASE("missing keys are reported with their type and help") {
  const Resolved r("SOLVER: {NAME: Train, MAX_EPOCHS: null, OPTIMIZER: {NAME: SGD}}");
  CHECK(r.problems.size() == 3);
  CHECK(r.says("solver Train needs MAX_EPOCHS (an integer, >= 1): How often the data is seen."));
  CHECK(r.says("solver Train needs MODEL (a model, {NAME: ...}): What is trained."));
  CHECK(r.says("optimizer SGD needs LEARNING_RATE (a number, > 0): Step size."));
}

TEST_CASE("a component that is no map with a NAME says what to write") {
  const Resolved r(
      solver_with("OPTIMIZER: SGD, TRAIN_DATA: {BATCH_SIZE: 1}, HOOKS: LogHook, "
                  "TRAIN_HOOKS: [LogHook, null, {NAME: [a]}]"));
  CHECK(r.says("OPTIMIZER must be an optimizer, which is a map with a NAME, got the text 'SGD': write {NAME: SGD}"));
  CHECK(r.says("TRAIN_DATA has no NAME: it must name a dataset, as in {NAME: Numbers}"));
  CHECK(r.says("HOOKS must be a list, got the text 'LogHook': write HOOKS:\n    - {NAME: ...}"));
  CHECK(r.says("TRAIN_HOOKS[0] must be a hook, which is a map with a NAME, got the text 'LogHook'"));
  CHECK(r.says("TRAIN_HOOKS[1] must be a hook, which is a map with a NAME, got nothing"));
  CHECK(r.says("the NAME of TRAIN_HOOKS[2] is a list"));
}

TEST_CASE("one component where a list is asked for is a list of one") {
  const Resolved r(solver_with("HOOKS: {NAME: LogHook}"));
  CHECK_FALSE(r.says("HOOKS must be"));
  CHECK(r.config.get<gantry::Config>("SOLVER").get<std::vector<gantry::Config>>("HOOKS").size() == 1);
}

TEST_CASE("all problems come at once in the order of their lines") {
  const Resolved r(
      "ENV: {SEED: -1, BACKEND: ncl}\nMODEL: 1\nSOLVR: 2\nSOLVER: {NAME: Train, MAX_EPOCHS: x, MODEL: {NAME: Net}, "
      "TRAIN_DATA: {NAME: Numbers, BATCH_SIZE: -3, SHUFFLE: 1}}\nPLUGIN_DIRS: {A: 1}");
  CHECK(r.text() ==
        "/etc/a.yaml:1: SEED must be >= 0, got -1\n"
        "/etc/a.yaml:1: BACKEND must be one of auto, nccl, gloo, got the text 'ncl'; did you mean 'nccl'?\n"
        "/etc/a.yaml:2: unknown key 'MODEL' at the top level; known: ENV, SOLVER, PLUGIN_DIRS\n"
        "/etc/a.yaml:3: unknown key 'SOLVR' at the top level; did you mean 'SOLVER'? known: ENV, SOLVER, PLUGIN_DIRS\n"
        "/etc/a.yaml:4: MAX_EPOCHS must be an integer, got the text 'x'\n"
        "/etc/a.yaml:4: BATCH_SIZE must be >= 1, got -3\n"
        "/etc/a.yaml:4: SHUFFLE must be true or false, got the number 1\n"
        "/etc/a.yaml:5: PLUGIN_DIRS must be a list of strings, got a map");
}

TEST_CASE("a configuration without SOLVER is refused") {
  CHECK(Resolved("ENV: {SEED: 1}").says("SOLVER is missing: write SOLVER: {NAME: "));
  CHECK(Resolved("SOLVER: null").says("SOLVER is missing"));
  CHECK(Resolved("SOLVER: Train").says("got the text 'Train': write {NAME: Train}"));
  CHECK(Resolved(solver_with("")).text() == "");
}

TEST_CASE("a pinned plugin is found beside the file that names it") {
  const Resolved r(solver_with("OPTIMIZER: {NAME: SGD, LEARNING_RATE: 1, PLUGIN: ../so/x.so}"));
  CHECK(r.text() == "");
  CHECK(r.catalogue.last_pinned == "/so/x.so");
  CHECK(r.solver().find("OPTIMIZER")->get<std::string>("PLUGIN") == "/so/x.so");
  const Resolved last(solver_with("HOOKS: [{NAME: LogHook, PLUGIN: /abs/x.so}]"));
  CHECK(last.catalogue.last_pinned == "/abs/x.so");
}

TEST_CASE("a plugin that cannot be used is one of the problems") {
  const Resolved r(solver_with("HOOKS: [{NAME: Broken}], OOPS: 1"));
  CHECK(r.problems.size() == 2);
  CHECK(r.says("/etc/a.yaml:2: broken.so needs another LibTorch"));
}

TEST_CASE("a hook that may be there only once is refused across all lists") {
  const Resolved r(
      "SOLVER: {NAME: Train, MAX_EPOCHS: 1, MODEL: {NAME: Net}, HOOKS: [{NAME: Checkpoint}], "
      "EVAL_HOOKS: [{NAME: Checkpoint}]}");
  CHECK(r.problems.size() == 1);
  CHECK(r.says("hook Checkpoint can be there only once; the other one is in HOOKS at /etc/a.yaml:1"));
}

TEST_CASE("training needs exactly one hook that runs the backward pass") {
  const std::string train = "OPTIMIZER: {NAME: SGD, LEARNING_RATE: 1}, TRAIN_DATA: {NAME: Numbers, BATCH_SIZE: 1}";
  const Resolved none(solver_with(train));
  CHECK(none.problems.size() == 1);
  CHECK(
      none.says("SOLVER has an OPTIMIZER but no hook that runs the backward pass, so nothing would be trained; "
                "add to TRAIN_HOOKS:\n    - {NAME: BackwardHook}"));
  CHECK(Resolved(solver_with(train + ", EVAL_HOOKS: [{NAME: BackwardHook}]")).says("no hook that runs the backward"));
  CHECK(Resolved(solver_with(train + ", TRAIN_HOOKS: [{NAME: BackwardHook}]")).text() == "");
  CHECK(Resolved(solver_with(train + ", HOOKS: [{NAME: BackwardHook}]")).text() == "");
  const Resolved two(solver_with(train + ", HOOKS: [{NAME: BackwardHook}], TRAIN_HOOKS: [{NAME: BackwardHook}]"));
  CHECK(two.problems.size() == 1);
  CHECK(two.says("/etc/a.yaml:2: hook BackwardHook runs the backward pass, and so does BackwardHook at /etc/a.yaml:2"));
  CHECK_FALSE(Resolved(solver_with(train + ", TRAIN_HOOKS: [{NAME: BackwardHok}]")).says("nothing would be trained"));
  CHECK(Resolved(solver_with("OPTIMIZER: {NAME: SGD, LEARNING_RATE: 1}")).text() == "");
}
