#include "gantry/compose.h"

#include <doctest/doctest.h>

#include "config_files.h"

using gantry::Config;
using gantry::ConfigError;

namespace {

bool says(const Files& files, const std::string& part) {
  const std::string text = text_of(files.problems);
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK_MESSAGE(found, text);
  return found;
}

std::string at(const Config& config, std::initializer_list<const char*> keys) {
  const Config* value = &config;
  for (const char* key : keys) {
    value = value->find(key);
    if (!value) return "(absent)";
  }
  return value->is_null() ? "(null)" : value->type() == Config::Type::scalar ? value->text() : value->yaml();
}

}  // namespace

TEST_CASE("a base gives what the file does not say") {
  Files files{{{"dir/a.yaml", "_BASE: ../base.yaml\nSOLVER: {EPOCHS: 3, HIDDEN: [9], MODEL: null}"},
               {"base.yaml", "ENV: {SEED: 1}\nSOLVER: {NAME: S, EPOCHS: 1, HIDDEN: [1, 2], MODEL: {NAME: M}}"}}};
  const Config config = files.compose("dir/a.yaml");
  CHECK(files.problems.empty());
  CHECK(at(config, {"ENV", "SEED"}) == "1");
  CHECK(at(config, {"SOLVER", "NAME"}) == "S");
  CHECK(at(config, {"SOLVER", "EPOCHS"}) == "3");
  CHECK(at(config, {"SOLVER", "HIDDEN"}) == "[9]\n");
  CHECK(at(config, {"SOLVER", "MODEL"}) == "(null)");
  CHECK(at(config, {"_BASE"}) == "(absent)");
  CHECK(config.find("SOLVER")->where("EPOCHS").str() == "dir/a.yaml:2");
  CHECK(config.find("SOLVER")->where("NAME").str() == "base.yaml:2");
}

TEST_CASE("later bases win over earlier ones and the file over all") {
  Files files{{{"a.yaml", "_BASE: [b.yaml, c.yaml]\nZ: {A: a}"},
               {"b.yaml", "Z: {A: b, B: b, C: b}"},
               {"c.yaml", "_BASE: d.yaml\nZ: {A: c, B: c}"},
               {"d.yaml", "Z: {A: d, B: d, D: d}"}}};
  const Config config = files.compose("a.yaml");
  CHECK(files.problems.empty());
  CHECK(at(config, {"Z", "A"}) == "a");
  CHECK(at(config, {"Z", "B"}) == "c");
  CHECK(at(config, {"Z", "C"}) == "b");
  CHECK(at(config, {"Z", "D"}) == "d");
}

TEST_CASE("another component does not inherit the keys of the one that it replaces") {
  Files files{{{"a.yaml", "_BASE: b.yaml\nO: {NAME: Adam, BETA: 1}\nP: {NAME: SGD, LR: 2}\nQ: {LR: 3}"},
               {"b.yaml", "O: {NAME: SGD, MOMENTUM: 9}\nP: {NAME: SGD, MOMENTUM: 9}\nQ: {NAME: SGD, LR: 1}"}}};
  const Config config = files.compose("a.yaml");
  CHECK(at(config, {"O"}) == "NAME: Adam\nBETA: 1\n");
  CHECK(at(config, {"P"}) == "NAME: SGD\nMOMENTUM: 9\nLR: 2\n");
  CHECK(at(config, {"Q"}) == "NAME: SGD\nLR: 3\n");
}

TEST_CASE("a circle of bases is refused with its chain") {
  Files files{{{"a.yaml", "_BASE: b.yaml"}, {"b.yaml", "X: 1\n_BASE: ./c.yaml"}, {"c.yaml", "_BASE: b.yaml"}}};
  files.compose("a.yaml");
  REQUIRE(files.problems.size() == 1);
  says(files, "c.yaml:1: _BASE goes in a circle: b.yaml -> c.yaml -> b.yaml");
}

TEST_CASE("bases that double at every level end at a limit") {
  Files files;
  for (int i = 0; i < 40; ++i) {
    const std::string next = gantry::cat(i + 1, ".yaml");
    files.texts[gantry::cat(i, ".yaml")] = gantry::cat("_BASE: [", next, ", ", next, "]");
  }
  files.texts["40.yaml"] = "A: 1";
  files.compose("0.yaml");
  says(files, "more than 1000 files");
}

TEST_CASE("a chain of bases ends at a limit") {
  Files files;
  for (int i = 0; i < 100; ++i) files.texts[gantry::cat(i, ".yaml")] = gantry::cat("_BASE: ", i + 1, ".yaml");
  files.compose("0.yaml");
  says(files, "_BASE is followed 50 files deep at most");
}

TEST_CASE("a missing base is reported where it is named") {
  Files files{{{"a.yaml", "X: 1\n_BASE: gone.yaml"}}};
  files.compose("a.yaml");
  says(files, "a.yaml:2: _BASE: gone.yaml: no such file");
  files.compose("nowhere.yaml");
  CHECK(text_of(files.problems) == "nowhere.yaml: no such file");
}

TEST_CASE("variables are replaced and keep the type of what they become") {
  Files files{{{"a.yaml",
                "A: ${N}\nB: '${N}'\nC: x-${N}-${GONE:-d}\nD: ${EMPTY:-e}\nE: ${EMPTY}\nF: $${N} $$${N}\n"
                "G: ${GONE:-}\n${N}: 1"}},
              {{"N", "3"}, {"EMPTY", ""}}};
  const Config config = files.compose("a.yaml");
  CHECK(text_of(files.problems) == "");
  CHECK(config.find("A")->as<int64_t>() == 3);
  CHECK_THROWS_AS(config.find("B")->as<int64_t>(), ConfigError);
  CHECK(at(config, {"C"}) == "x-3-d");
  CHECK(at(config, {"D"}) == "e");
  CHECK(at(config, {"E"}) == "(null)");
  CHECK(at(config, {"F"}) == "${N} $${N}");
  CHECK(at(config, {"G"}) == "(null)");
  CHECK(at(config, {"${N}"}) == "1");
}

TEST_CASE("an unset variable and a malformed one are errors with their lines") {
  Files files{{{"a.yaml", "A: ${GONE}\nB: ${A\nC: ${1X}\nD: ${}"}}};
  files.compose("a.yaml");
  REQUIRE(files.problems.size() == 4);
  says(files, "a.yaml:1: the environment variable GONE is not set");
  says(files, "a.yaml:2: ${ has no closing }");
  says(files, "a.yaml:3: ${1X} names no variable");
}

TEST_CASE("text that yaml escaped reads back as it was") {
  Files files{{{"a.yaml", "A: " + Config::scalar("$${X} ${Y}", {}, true).yaml()}}};
  const Config config = files.compose("a.yaml");
  CHECK(text_of(files.problems) == "");
  CHECK(at(config, {"A"}) == "$${X} ${Y}");
}

TEST_CASE("overrides replace values and make the maps on their way") {
  Files files{{{"a.yaml", "SOLVER: {NAME: S, O: {NAME: SGD, LR: 1}, H: [{NAME: Log, N: 1}, {NAME: acme/B.x}]}"}}};
  const Config config =
      files.compose("a.yaml", {"SOLVER.O.LR=1e-2", "SOLVER.H[Log].N=5", "SOLVER.H[acme/B.x].M=[1, 'a, b', {K: v}]",
                               "SOLVER.H[0].P=", "ENV.SEED=7", "SOLVER.NOTE=a, b: c", "SOLVER.Q='3'", "SOLVER.EQ=a=b"});
  CHECK(text_of(files.problems) == "");
  CHECK(config.find("SOLVER")->find("O")->find("LR")->as<double>() == 0.01);
  CHECK(config.find("SOLVER")->find("O")->find("LR")->where().str() == "command line 'SOLVER.O.LR=1e-2'");
  CHECK(config.find("SOLVER")->where("O").str() == "a.yaml:1");
  CHECK(at(config, {"SOLVER", "H"}) ==
        "- NAME: Log\n  N: 5\n  P: null\n- NAME: acme/B.x\n  M:\n    - 1\n    - 'a, b'\n    - K: v\n");
  CHECK(at(config, {"ENV", "SEED"}) == "7");
  CHECK(at(config, {"SOLVER", "NOTE"}) == "a, b: c");
  CHECK(config.find("SOLVER")->find("Q")->quoted());
  CHECK(at(config, {"SOLVER", "EQ"}) == "a=b");
}

TEST_CASE("overrides that cannot be applied say why") {
  Files files{{{"a.yaml", "X: 1\nSOLVER: {E: 3, H: [{NAME: Log}, {NAME: Log}]}"}}};
  files.compose("a.yaml",
                {"NOEQUALS", "=1", "A..B=1", "SOLVER.E.F=1", "SOLVER.H.N=1", "SOLVER.H[Log].N=1", "SOLVER.H[Lgo].N=1",
                 "SOLVER.H[2].N=1", "SOLVER.E[0]=1", "A=[1, 2", "A={B: 1, B: 2}", "A=[1] 2", "A='x", "A[=1"});
  CHECK(files.problems.size() == 14);
  says(files, "command line 'NOEQUALS': an override is KEY=VALUE");
  says(files, "command line '=1': the path '' is malformed");
  says(files, "the path 'A..B' is malformed");
  says(files, "SOLVER.E (a.yaml:2) is the number 3, which has no key F");
  says(files, "SOLVER.H (a.yaml:2) is a list: write SOLVER.H[0] or SOLVER.H[NAME]");
  says(files, "SOLVER.H has 2 items of the NAME 'Log': write [0] or [1]");
  says(files, "SOLVER.H has no item of the NAME 'Lgo'; did you mean 'Log'");
  says(files, "SOLVER.H has no item 2, only 0 to 1");
  says(files, "SOLVER.E (a.yaml:2) is the number 3, not a list");
  says(files, "lacks a closing ]");
  says(files, "has the key 'B' twice");
  says(files, "has '2' after its end");
  says(files, "lacks a closing quote");
}

TEST_CASE("a plus appends to an inherited list and brackets merge into its item") {
  Files files{{{"a.yaml", "_BASE: b.yaml\nS: {+H: [{NAME: C}], 'H[B]': {N: 2}, +NEW: [1]}"},
               {"b.yaml", "S: {H: [{NAME: A}, {NAME: B, N: 1, M: 1}]}"}}};
  const Config config = files.compose("a.yaml");
  CHECK(text_of(files.problems) == "");
  CHECK(at(config, {"S", "H"}) == "- NAME: A\n- NAME: B\n  N: 2\n  M: 1\n- NAME: C\n");
  CHECK(at(config, {"S", "NEW"}) == "[1]\n");
}

TEST_CASE("appending to what is no list and merging into no item are errors") {
  Files files{
      {{"a.yaml", "_BASE: b.yaml\n+N: [2]\n+H: 3\nH[X]: {A: 1}\nGONE[X]: {A: 1}"}, {"b.yaml", "N: 1\nH: [{NAME: B}]"}}};
  files.compose("a.yaml");
  CHECK(files.problems.size() == 4);
  says(files, "a.yaml:2: +N appends to N, which is the number 1 (b.yaml:1), not a list");
  says(files, "a.yaml:3: +H appends to a list and must be a list itself, got the number 3");
  says(files, "a.yaml:4: H has no item of the NAME 'X'");
  says(files, "a.yaml:5: GONE[X] merges into an item of the list GONE, but none of the files before has that key");
}

TEST_CASE("aliases that multiply are refused at once") {
  Config bomb = flow("[1, 2]");
  for (int i = 0; i < 64; ++i) bomb = Config::list({bomb, bomb}, {"a.yaml", 1, 1});
  const gantry::ComposeSources sources{[&](const std::string&) {
                                         return Config::map({{"A", {"a.yaml", 1, 1}, bomb}}, {"a.yaml", 1, 1});
                                       },
                                       [](const std::string&) { return std::optional<std::string>(); }};
  std::vector<ConfigError> problems;
  gantry::compose("a.yaml", {}, sources, problems);
  CHECK(text_of(problems).find("a.yaml:1: the aliases of this file multiply") != std::string::npos);
}
