#include <doctest/doctest.h>

#include <cmath>

#include "gantry/capability.h"
#include "gantry/lr_scheduler.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

// Defaults and groups; the course of the rates is compared with PyTorch's in tests/parity.

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

std::unique_ptr<gantry::LrScheduler> schedule(const std::string& library, const std::string& name, const Keys& keys) {
  return PluginUnderTest(library).build<gantry::LrScheduler>(name, map_config(keys));
}
std::unique_ptr<gantry::LrScheduler> cyclic(const Keys& keys) {
  Keys all = {{"MAX_LR", text_config("1")}};
  all.insert(all.end(), keys.begin(), keys.end());
  return schedule("gantry-cyclic-lr", "CyclicLR", all);
}

gantry::SchedulePosition place(double position) {
  gantry::SchedulePosition result;
  result.at = position;
  return result;
}

doctest::Approx near(double value) { return doctest::Approx(value).epsilon(1e-12); }

}  // namespace

TEST_CASE("CosineAnnealingWarmRestarts has cycles of one length that come down to zero unless told otherwise") {
  const auto restarts =
      schedule("gantry-cosine-annealing-warm-restarts", "CosineAnnealingWarmRestarts", {{"T_0", text_config("10")}});
  CHECK(restarts->lr(place(0), 0.8, 0) == near(0.8));
  CHECK(restarts->lr(place(5), 0.8, 0) == near(0.4));
  CHECK(restarts->lr(place(9.999999), 0.8, 0) < 1e-10);
  CHECK(restarts->lr(place(10), 0.8, 0) == near(0.8));
  CHECK(restarts->lr(place(12.5), 0.8, 0) == near(restarts->lr(place(2.5), 0.8, 0)));
  CHECK(restarts->lr(place(1005), 0.8, 0) == near(0.4));
}

TEST_CASE("the schedules that count epochs by default are those that PyTorch's users step by epoch") {
  CHECK(schedule("gantry-cosine-annealing-warm-restarts", "CosineAnnealingWarmRestarts", {{"T_0", text_config("10")}})
            ->counts_epochs_by_default());
  CHECK(
      schedule("gantry-exponential-lr", "ExponentialLR", {{"GAMMA", text_config("0.5")}})->counts_epochs_by_default());
  CHECK(schedule("gantry-lino-poly-lr", "LinoPolyLR", {{"END_EPOCH", text_config("5")}})->counts_epochs_by_default());
  CHECK_FALSE(cyclic({})->counts_epochs_by_default());
}

TEST_CASE("LinoPolyLR comes down along a line by default and stays at zero") {
  const auto poly = schedule("gantry-lino-poly-lr", "LinoPolyLR", {{"END_EPOCH", text_config("8")}});
  CHECK(poly->lr(place(0), 0.8, 0) == 0.8);
  CHECK(poly->lr(place(2), 0.8, 0) == near(0.6));
  CHECK(poly->lr(place(6.5), 0.8, 0) == near(0.15));
  CHECK(poly->lr(place(8), 0.8, 0) == 0);
  CHECK(poly->lr(place(100), 0.8, 0) == 0);
}

TEST_CASE("CyclicLR begins with the group's own rate and cycles the momentum unless told not to") {
  const auto plain = cyclic({});
  CHECK(plain->lr(place(0), 0.2, 0) == 0.2);
  CHECK(plain->lr(place(1000), 0.2, 0) == near(0.6));
  CHECK(plain->lr(place(2000), 0.2, 0) == near(1));
  CHECK(plain->lr(place(4000), 0.2, 0) == near(0.2));
  const auto momentum = [](const gantry::LrScheduler& schedule, double position) {
    return dynamic_cast<const gantry::MomentumSchedule&>(schedule).momentum(place(position), 0);
  };
  CHECK(momentum(*plain, 0) == 0.9);
  CHECK(momentum(*plain, 2000) == near(0.8));
  CHECK(std::isnan(momentum(*cyclic({{"CYCLE_MOMENTUM", text_config("false")}}), 0)));
}

TEST_CASE("CyclicLR takes one number for each group and complains of a group without one") {
  const auto groups =
      cyclic({{"BASE_LR", list_config({"0.1", "0.2"})}, {"MAX_MOMENTUM", list_config({"0.95", "0.85"})}});
  CHECK(groups->lr(place(0), 7, 0) == 0.1);
  CHECK(groups->lr(place(0), 7, 1) == 0.2);
  CHECK(dynamic_cast<const gantry::MomentumSchedule&>(*groups).momentum(place(0), 1) == 0.85);
  CHECK(contains(message_of([&] { groups->lr(place(0), 7, 2); }),
                 "BASE_LR has 2 values, but the optimizer has a group 2"));
}

TEST_CASE("ReduceLROnPlateau has a lowest rate for each group") {
  const auto plateau = schedule("gantry-reduce-lr-on-plateau", "ReduceLROnPlateau",
                                {{"FACTOR", text_config("0.5")}, {"MIN_LR", list_config({"0.3", "0.01"})}});
  auto& stateful = dynamic_cast<gantry::Stateful&>(*plateau);
  gantry::State state;
  state.set_double("best", 1);
  state.set_int("num_bad_epochs", 0);
  state.set_int("cooldown_counter", 0);
  state.set_int("reductions", 3);
  stateful.load_state(state, 1);
  CHECK(plateau->lr({}, 0.8, 0) == 0.3);
  CHECK(plateau->lr({}, 0.8, 1) == near(0.1));
  CHECK(plateau->lr({}, 0.2, 1) == near(0.025));
  CHECK(contains(message_of([&] { plateau->lr({}, 0.8, 2); }), "MIN_LR has 2 values, but the optimizer has a group 2"));
}
