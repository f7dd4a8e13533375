#include <doctest/doctest.h>

#include "gantry/capability.h"
#include "gantry/hook.h"
#include "gantry/optimizer.h"
#include "plugin_under_test.h"

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

class Warmup {
 public:
  explicit Warmup(const Keys& keys)
      : hook_(PluginUnderTest("gantry-lr").build<gantry::Hook>("LrHook", map_config(keys))),
        rates_(dynamic_cast<gantry::LearningRateHook*>(hook_.get())) {
    REQUIRE(rates_ != nullptr);
  }

  double at(double epoch, double scheduled) const {
    gantry::SchedulePosition position;
    position.epoch = epoch;
    return rates_->learning_rate(position, scheduled, gantry::ParamGroup("default", 1000));
  }
  bool fractional() const { return rates_->fractional_epochs(); }

 private:
  std::unique_ptr<gantry::Hook> hook_;
  gantry::LearningRateHook* rates_;
};

doctest::Approx near(double value) { return doctest::Approx(value).epsilon(1e-12); }

}  // namespace

TEST_CASE("LrHook by default runs the first epoch at 0.0001 and leaves the others to the schedule") {
  const Warmup hook({});
  CHECK_FALSE(hook.fractional());
  CHECK(hook.at(0, 0.5) == near(0.0001));
  CHECK(hook.at(0.999, 0.5) == near(0.0001));
  CHECK(hook.at(1, 0.5) == 0.5);
  CHECK(hook.at(7, 0.25) == 0.25);
}

TEST_CASE("LrHook by epoch rises by the same amount with each epoch towards what the schedule gives then") {
  const Warmup hook({{"WARMUP_EPOCHS", text_config("4")}, {"WARMUP_START_LR", text_config("0.1")}});
  CHECK(hook.at(0, 0.5) == near(0.1));
  CHECK(hook.at(1.75, 0.5) == near(0.2));
  CHECK(hook.at(2, 0.5) == near(0.3));
  CHECK(hook.at(2, 0.3) == near(0.2));
  CHECK(hook.at(3, 0.5) == near(0.4));
  CHECK(hook.at(4, 0.5) == 0.5);
}

TEST_CASE("LrHook by step follows the fraction of the running epoch and asks schedules to do so") {
  const Warmup hook({{"WARMUP_EPOCHS", text_config("2")},
                     {"WARMUP_START_LR", text_config("0.1")},
                     {"SET_BY_EPOCH", text_config("false")}});
  CHECK(hook.fractional());
  CHECK(hook.at(0, 0.5) == near(0.1));
  CHECK(hook.at(0.5, 0.5) == near(0.2));
  CHECK(hook.at(1.5, 0.5) == near(0.4));
  CHECK(hook.at(2, 0.5) == 0.5);
}

TEST_CASE("LrHook without a warm-up passes on what the schedule gives") {
  for (const Keys& keys : {Keys{{"WARMUP_FUNC", text_config("none")}}, Keys{{"WARMUP_EPOCHS", text_config("0")}}}) {
    const Warmup hook(keys);
    CHECK(hook.at(0, 0.5) == 0.5);
    CHECK(hook.at(0.5, 0.25) == 0.25);
  }
}
