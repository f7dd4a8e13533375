#include <doctest/doctest.h>

#include "gantry/lr_scheduler.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

// That expressions give what Python's do is in tests/parity.

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

std::unique_ptr<gantry::LrScheduler> lambda(const Keys& keys) {
  return PluginUnderTest("gantry-lambda-lr").build<gantry::LrScheduler>("LambdaLR", map_config(keys));
}
std::string complaint(const Keys& keys) {
  return PluginUnderTest("gantry-lambda-lr").config_error<gantry::LrScheduler>("LambdaLR", map_config(keys));
}
std::string complaint(const std::string& expression) { return complaint(Keys{{"LR_LAMBDA", text_config(expression)}}); }

/// Of a base rate of 1.
double value(const std::string& expression, const gantry::SchedulePosition& position, const char* unit = nullptr) {
  Keys keys = {{"LR_LAMBDA", text_config(expression)}};
  if (unit != nullptr) keys.emplace_back("UNIT", text_config(unit));
  return lambda(keys)->lr(position, 1, 0);
}

gantry::SchedulePosition position() {
  gantry::SchedulePosition position;
  position.at = 37.5;
  position.step = 37;
  position.epoch = 2.75;
  position.total_steps = 1000;
  position.total_epochs = 80;
  return position;
}

}  // namespace

TEST_CASE("expressions of LambdaLR may name the position and the length of the run") {
  CHECK(value("t", position()) == 37.5);
  CHECK(value("step", position()) == 37);
  CHECK(value("epoch", position()) == 2);              // completed ones
  CHECK(value("epoch", position(), "epoch") == 37.5);  // a fraction is there where it was asked for
  CHECK(value("total_steps", position()) == 1000);
  CHECK(value("total_epochs", position()) == 80);
  CHECK(value("step < 40 ? floor(2.5) : ceil(2.5)", position()) == 2);
  CHECK(value("step < 30 ? floor(2.5) : ceil(2.5)", position()) == 3);
  CHECK(value("cos(pi)**2", position()) == 1);
  CHECK_FALSE(lambda({{"LR_LAMBDA", text_config("t")}})->counts_epochs_by_default());
}

TEST_CASE("LambdaLR says where an expression cannot be read") {
  CHECK(contains(complaint("0.5 ** "), "LR_LAMBDA '0.5 ** ' cannot be read: Unexpected end of expression at position"));
  CHECK(contains(complaint("0.9 ** eopch"), "\"eopch\" found at position 7"));
  CHECK(contains(complaint("(1 + t"), "at position 6"));
  CHECK(contains(complaint("min(t"), "position"));
  CHECK(contains(complaint("3 4"), "position 2"));
  CHECK(contains(complaint(""), "LR_LAMBDA '' cannot be read"));
  CHECK(contains(complaint("1, 2"), "several expressions"));
  CHECK(contains(complaint("t = 3"), "assigns to a variable"));
  CHECK(contains(complaint(Keys{{"LR_LAMBDA", list_config({"1", "t +"})}}), "'t +' cannot be read"));
}

TEST_CASE("LambdaLR takes an expression or a table and not both") {
  CHECK(contains(complaint(Keys{}), "LR_LAMBDA is missing"));
  CHECK(contains(complaint(Keys{{"LR_LAMBDA", text_config("1")}, {"TABLE", list_config({"1"})}}),
                 "LR_LAMBDA and TABLE exclude each other"));
}

TEST_CASE("the last entry of a table of LambdaLR stays and positions between entries have the one before") {
  const auto schedule = lambda({{"TABLE", list_config({"1", "0.5", "0.125"})}});
  gantry::SchedulePosition position;
  for (const auto& [at, factor] :
       std::vector<std::pair<double, double>>{{0, 1}, {0.99, 1}, {1, 0.5}, {2, 0.125}, {3, 0.125}, {1e300, 0.125}}) {
    position.at = at;
    CHECK(schedule->lr(position, 0.5, 3) == 0.5 * factor);
  }
}

TEST_CASE("a factor of LambdaLR that is not finite or is negative is an error that says where") {
  for (const char* text : {"1 / (step - 37)", "0 / (step - 37)", "-1", "log(0)", "10 ** 400"})
    CHECK(contains(message_of([&] { value(text, position()); }), "at epoch 2.0, step 37"));
  CHECK(contains(message_of([] { value("1 / (step - 37)", position()); }), "'1 / (step - 37)' is inf"));
}

TEST_CASE("LambdaLR takes one expression for each group and complains of a group without one") {
  const auto schedule = lambda({{"LR_LAMBDA", list_config({"1", "0.5"})}});
  CHECK(schedule->lr({}, 0.4, 0) == 0.4);
  CHECK(schedule->lr({}, 0.4, 1) == 0.2);
  CHECK(contains(message_of([&] { schedule->lr({}, 0.4, 2); }),
                 "LR_LAMBDA has 2 expressions, but the optimizer has a "
                 "group 2"));
}
