#include "gantry/config.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "config_files.h"
#include "gantry/parameters.h"
#include "gantry/text.h"

using gantry::Config;
using gantry::ConfigError;
using gantry::Interval;

namespace {

template <class T>
std::string refusal(const Config& value) {
  try {
    value.as<T>();
  } catch (const ConfigError& error) {
    return error.message();
  }
  return "accepted";
}

bool same(const Config& a, const Config& b) {
  if (a.type() != b.type() || a.items().size() != b.items().size() || a.entries().size() != b.entries().size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.items().size(); ++i) {
    if (!same(a.items()[i], b.items()[i])) return false;
  }
  for (std::size_t i = 0; i < a.entries().size(); ++i) {
    if (a.entries()[i].key != b.entries()[i].key || !same(a.entries()[i].value, b.entries()[i].value)) return false;
  }
  return a.text() == b.text();
}

std::vector<ConfigError> problems_of(const gantry::Parameter& parameter, const Config& value) {
  std::vector<ConfigError> problems;
  parameter.check(value, problems);
  return problems;
}

}  // namespace

TEST_CASE("booleans are six words in any case and nothing else") {
  for (const char* word : {"true", "True", "YES", "on"}) CHECK(flow(word).as<bool>());
  for (const char* word : {"false", "FALSE", "no", "Off"}) CHECK_FALSE(flow(word).as<bool>());
  CHECK(refusal<bool>(flow("1")) == "the value must be true or false, got the number 1");
  CHECK(refusal<bool>(flow("y")) == "the value must be true or false, got the text 'y'");
  CHECK(refusal<bool>(flow("'yes'")) == "the value must be true or false; 'yes' is quoted: write yes");
}

TEST_CASE("integers are exact over the whole range and refused beyond it") {
  CHECK(flow("-9223372036854775808").as<int64_t>() == std::numeric_limits<int64_t>::min());
  CHECK(flow("9223372036854775807").as<int64_t>() == std::numeric_limits<int64_t>::max());
  CHECK(flow("+7").as<int64_t>() == 7);
  CHECK(flow("007").as<int64_t>() == 7);
  CHECK(flow("1e3").as<int64_t>() == 1000);
  CHECK(flow("1.5E1").as<int64_t>() == 15);
  CHECK(flow("1200e-2").as<int64_t>() == 12);
  CHECK(flow("0e-99").as<int64_t>() == 0);
  CHECK(flow("9223372036854775807e0").as<int64_t>() == std::numeric_limits<int64_t>::max());
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "1e19", "1e99999999999"}) {
    CHECK(refusal<int64_t>(flow(text)).find("must be an integer between -9223372036854775808") != std::string::npos);
  }
  for (const char* text : {"3.0", "1.5e0", "1e-1", "1_000", "0x10", "1e", "e3", "-", "+-1", "1 2", "abc"}) {
    CHECK_MESSAGE(refusal<int64_t>(flow(text)).find("must be an integer, got") != std::string::npos, text);
  }
  CHECK(refusal<int64_t>(flow("'3'")) == "the value must be an integer; '3' is quoted: write 3");
}

TEST_CASE("numbers are read in every usual spelling") {
  CHECK(flow("1e-4").as<double>() == 1e-4);
  CHECK(flow("1E5").as<double>() == 1e5);
  CHECK(flow(".5").as<double>() == 0.5);
  CHECK(flow("-3").as<double>() == -3);
  CHECK(std::isnan(flow("nan").as<double>()));
  CHECK(std::isnan(flow(".NaN").as<double>()));
  CHECK(flow("-.inf").as<double>() == -std::numeric_limits<double>::infinity());
  CHECK(flow("inf").as<double>() == std::numeric_limits<double>::infinity());
  for (const char* text : {"abc", "1.2.3", "0x10", "1e", ".", "-", "infinite", "1,5"}) {
    CHECK_MESSAGE(refusal<double>(flow(text)).find("must be a number, got the text") != std::string::npos, text);
  }
  CHECK(refusal<double>(flow("1e999")).find("that a double can hold, got 1e999") != std::string::npos);
}

TEST_CASE("a string takes an unquoted number as its text") {
  CHECK(flow("1e3").as<std::string>() == "1e3");
  CHECK(flow("'a b'").as<std::string>() == "a b");
  CHECK(refusal<std::string>(flow("[a]")) == "the value must be a string, got a list");
}

TEST_CASE("intervals have units") {
  CHECK(flow("500 iters").as<Interval>().unit == Interval::Unit::iterations);
  CHECK(flow("3 Steps").as<Interval>().unit == Interval::Unit::steps);
  CHECK(flow("2epochs").as<Interval>().unit == Interval::Unit::epochs);
  CHECK(flow("2epochs").as<Interval>().count == 2);
  CHECK(flow("1.5 h").as<Interval>().count == 5400);
  CHECK(flow("90 s").as<Interval>().count == 90);
  CHECK(flow("-1").as<Interval>().off());
  CHECK(refusal<Interval>(flow("5 fortnights")).find("has the unit 'fortnights'") != std::string::npos);
  CHECK(refusal<Interval>(flow("1.5 steps")).find("must be a whole number of steps, got 1.5") != std::string::npos);
  CHECK(refusal<Interval>(flow("often")).find("got the text 'often'") != std::string::npos);
}

TEST_CASE("a scalar is a list of one where a list is declared") {
  CHECK(flow("3").as<std::vector<int64_t>>() == std::vector<int64_t>{3});
  CHECK(flow("[a, 'b c', 2]").as<std::vector<std::string>>() == std::vector<std::string>{"a", "b c", "2"});
  CHECK(refusal<std::vector<double>>(flow("[1, x]")) == "the value[1] must be a number, got the text 'x'");
}

TEST_CASE("reading what was not declared is a defect of the plugin") {
  const Config config = flow("{A: 1, B: null}").as_component("hook", "LogHook", "SOLVER.TRAIN_HOOKS[0]");
  CHECK(config.get<int64_t>("A") == 1);
  CHECK_FALSE(config.has("B"));
  CHECK_THROWS_WITH_AS(config.get<int64_t>("C"), "hook LogHook reads C, which it did not declare", std::logic_error);
  CHECK_THROWS_AS(config.get<int64_t>("B"), std::logic_error);
  CHECK(config.path() == "SOLVER.TRAIN_HOOKS[0]");
}

TEST_CASE("an error begins with its place") {
  const Config config = file_config("a.yaml", "A: 1\nGAMMA: 2");
  const ConfigError error = config.error("GAMMA", "must differ from A");
  CHECK(std::string(error.what()) == "a.yaml:2: GAMMA must differ from A");
  CHECK(error.message() == "GAMMA must differ from A");
  CHECK(std::string(ConfigError({"command line 'A=1'", 0, 0}, "no").what()) == "command line 'A=1': no");
}

TEST_CASE("shared values are counted at every use without overflow") {
  Config value = flow("[1, 2]");
  CHECK(value.total_size() == 3);
  for (int i = 0; i < 100; ++i) value = Config::list({value, value}, {});
  CHECK(value.total_size() == std::numeric_limits<int64_t>::max());
}

TEST_CASE("with and without change one key and keep the others in order") {
  const Config config = flow("{A: 1, B: 2, C: 3}");
  const Config changed = config.with("B", flow("9")).without("A").with("D", flow("4"));
  CHECK(same(changed, flow("{B: 9, C: 3, D: 4}")));
  CHECK(same(config, flow("{A: 1, B: 2, C: 3}")));
}

TEST_CASE("yaml quotes what would otherwise be read as something else") {
  const auto quoted = [](const char* text) { return Config::scalar(text, {}, true).yaml(); };
  CHECK(quoted("auto") == "auto\n");
  CHECK(quoted("3") == "'3'\n");
  CHECK(quoted("1e-4") == "'1e-4'\n");
  CHECK(quoted("yes") == "'yes'\n");
  CHECK(quoted("null") == "'null'\n");
  CHECK(quoted("~") == "'~'\n");
  CHECK(quoted("") == "''\n");
  CHECK(quoted("a: b") == "'a: b'\n");
  CHECK(quoted("it's") == "'it''s'\n");
  CHECK(quoted("a\nb\\") == "\"a\\nb\\\\\"\n");
  CHECK(quoted("- x") == "'- x'\n");
  CHECK(quoted("trailing ") == "'trailing '\n");
  CHECK(quoted("${HOME}") == "'$${HOME}'\n");
  CHECK(flow("1e-4").yaml() == "1e-4\n");
  CHECK(flow("-3").yaml() == "-3\n");
  CHECK(flow("null").yaml() == "null\n");
}

TEST_CASE("yaml nests maps and lists of components in block style") {
  const Config config =
      flow("{SOLVER: {NAME: S, HIDDEN: [32, 16], HOOKS: [{NAME: A, N: {NAME: M}}, {NAME: B}], E: {}}, Z: []}");
  CHECK(config.yaml() ==
        "SOLVER:\n"
        "  NAME: S\n"
        "  HIDDEN: [32, 16]\n"
        "  HOOKS:\n"
        "    - NAME: A\n"
        "      N:\n"
        "        NAME: M\n"
        "    - NAME: B\n"
        "  E: {}\n"
        "Z: []\n");
}

TEST_CASE("a declaration checks type and range and choices of every item") {
  gantry::Parameters p;
  p.add<int64_t>("BATCH_SIZE").at_least(1).below(1000);
  p.add<std::vector<double>>("RATES").above(0).not_empty();
  p.add<std::string>("BACKEND", "auto").choices({"auto", "nccl", "gloo"});
  p.add<Interval>("EVERY", {1, Interval::Unit::epochs}).unit("epochs");
  p.add<Interval>("LOG", {10, Interval::Unit::iterations}).no_effect_on_result();
  p.add<double>("X").at_least(0);

  CHECK(p.find("BATCH_SIZE")->range_text() == ">= 1, < 1000");
  CHECK(text_of(problems_of(*p.find("BATCH_SIZE"), flow("-3", "a.yaml", 7))) ==
        "a.yaml:7: BATCH_SIZE must be >= 1, < 1000, got -3");
  CHECK(problems_of(*p.find("BATCH_SIZE"), flow("1000")).size() == 1);
  CHECK(problems_of(*p.find("BATCH_SIZE"), flow("999")).empty());
  CHECK(text_of(problems_of(*p.find("RATES"), flow("[1, 0, x]"))) ==
        "t.yaml:1: RATES[1] must be > 0, got 0\nt.yaml:1: RATES[2] must be a number, got the text 'x'");
  CHECK(text_of(problems_of(*p.find("RATES"), flow("[]"))) == "t.yaml:1: RATES must have at least one item");
  CHECK(text_of(problems_of(*p.find("BACKEND"), flow("ncl"))) ==
        "t.yaml:1: BACKEND must be one of auto, nccl, gloo, got the text 'ncl'; did you mean 'nccl'?");
  CHECK(text_of(problems_of(*p.find("EVERY"), flow("5 min"))).find("must not be a time") != std::string::npos);
  CHECK(problems_of(*p.find("EVERY"), flow("5 steps")).empty());
  CHECK(problems_of(*p.find("LOG"), flow("5 min")).empty());
  CHECK(problems_of(*p.find("X"), flow("nan")).size() == 1);
  CHECK_THROWS_AS(p.add<Interval>("BAD", {}).unit("batches"), std::logic_error);
}

TEST_CASE("declaring again replaces in place and keeps references valid") {
  gantry::Parameters p;
  gantry::Parameter& first = p.add<int64_t>("A", 1);
  p.add<int64_t>("B", 2);
  p.add<int64_t>("A", 3);
  p.priority(50);
  p.priority(60);
  REQUIRE(p.all().size() == 3);
  CHECK(&first == &p.all()[0]);
  CHECK(p.all()[0].default_value().as<int64_t>() == 3);
  CHECK(p.find("PRIORITY")->default_value().as<int64_t>() == 60);
}

TEST_CASE("numbers are printed so that they read back as the same bits") {
  for (const double value : {0.1, 1e-4, 1.0, 1e300, -0.0, 1.0 / 3, 5e-324}) {
    const double back = Config::scalar(gantry::number_text(value), {}).as<double>();
    CHECK(back == value);
    CHECK(std::signbit(back) == std::signbit(value));
  }
  CHECK(gantry::number_text(1) == "1.0");
  CHECK(gantry::number_text(-std::numeric_limits<double>::infinity()) == "-inf");
}

TEST_CASE("near matches forgive one slip in three letters and ignore case") {
  const std::vector<std::string> names{"LEARNING_RATE", "MOMENTUM", "WEIGHT_DECAY", "LR"};
  CHECK(gantry::near_matches("LERNING_RATE", names) == std::vector<std::string>{"LEARNING_RATE"});
  CHECK(gantry::near_matches("learning_rate", names) == std::vector<std::string>{"LEARNING_RATE"});
  CHECK(gantry::near_matches("MOEMNTUM", names) == std::vector<std::string>{"MOMENTUM"});
  CHECK(gantry::near_matches("RL", names) == std::vector<std::string>{"LR"});
  CHECK(gantry::near_matches("BATCH_SIZE", names).empty());
  CHECK(gantry::near_matches("", names).empty());
  CHECK(gantry::near_matches("ab", {"ac", "ab", "ad", "b"}, 2) == std::vector<std::string>{"ab", "ac"});
}
