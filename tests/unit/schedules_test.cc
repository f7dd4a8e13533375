#include <doctest/doctest.h>

#include "gantry/lr_scheduler.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

// Numbers by hand; what PyTorch gives is compared in tests/parity.

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

class Schedule {
 public:
  Schedule(const std::string& library, const std::string& name, const Keys& keys)
      : schedule_(PluginUnderTest(library).build<gantry::LrScheduler>(name, map_config(keys))) {}

  double at(double position, int64_t total_steps = 0, double total_epochs = 0) const {
    gantry::SchedulePosition where;
    where.at = position;
    where.total_steps = total_steps;
    where.total_epochs = total_epochs;
    return schedule_->lr(where, 0.8, 0);
  }
  bool counts_epochs() const { return schedule_->counts_epochs_by_default(); }

 private:
  std::unique_ptr<gantry::LrScheduler> schedule_;
};

Schedule annealing(const Keys& keys) { return {"gantry-step-annealing-lr", "StepAnnealingLR", keys}; }
Schedule warmup(const std::string& steps) {
  return {"gantry-warmup-to-constant-lr", "WarmupToConstantLR", {{"WARMUP_STEPS", text_config(steps)}}};
}
Schedule cosine(const std::string& t_max) {
  return {"gantry-cosine-annealing-lr", "CosineAnnealingLR", {{"T_MAX", text_config(t_max)}}};
}
Schedule milestones(const std::vector<std::string>& at) {
  return {"gantry-multi-step-lr", "MultiStepLR", {{"MILESTONES", list_config(at)}, {"GAMMA", text_config("0.5")}}};
}

doctest::Approx near(double value) { return doctest::Approx(value).epsilon(1e-12); }

}  // namespace

TEST_CASE("MultiStepLR and CosineAnnealingLR count epochs unless told otherwise and warm-ups count steps") {
  CHECK(milestones({"3"}).counts_epochs());
  CHECK(cosine("3").counts_epochs());
  CHECK_FALSE(warmup("3").counts_epochs());
  CHECK_FALSE(annealing({}).counts_epochs());
}

TEST_CASE("MultiStepLR lowers the rate once a milestone is reached and not on the way") {
  const Schedule schedule = milestones({"5", "2"});
  CHECK(schedule.at(1.99) == near(0.8));
  CHECK(schedule.at(2) == near(0.4));
  CHECK(schedule.at(4.5) == near(0.4));
  CHECK(schedule.at(5) == near(0.2));
  CHECK(schedule.at(1000) == near(0.2));
}

TEST_CASE("CosineAnnealingLR is half way down in the middle and follows fractions of an epoch") {
  const Schedule schedule = cosine("10");
  CHECK(schedule.at(0) == near(0.8));
  CHECK(schedule.at(5) == near(0.4));
  CHECK(schedule.at(2.5) == near(0.4 + 0.4 * 0.70710678118654752440));
  CHECK(schedule.at(10) == 0);
}

TEST_CASE("a warm-up does not begin with a rate of zero and reaches the whole rate in its last step") {
  const Schedule schedule = warmup("4");
  CHECK(schedule.at(0) == near(0.2));
  CHECK(schedule.at(2) == near(0.6));
  CHECK(schedule.at(3) == 0.8);
  CHECK(schedule.at(4) == 0.8);
  const Schedule annealed = annealing({{"WARMUP_STEPS", text_config("4")}});
  CHECK(annealed.at(0, 20) == near(0.2));
  CHECK(annealed.at(3, 20) == near(0.8));
  CHECK(annealed.at(4, 20) == near(0.8));
  CHECK(annealed.at(12, 20) == near(0.4));
}

TEST_CASE("a warm-up of no steps gives the whole rate at once") {
  CHECK(warmup("0").at(0) == 0.8);
  CHECK(annealing({{"WARMUP_STEPS", text_config("0")}}).at(0, 10) == 0.8);
}

TEST_CASE("StepAnnealingLR ends with the run in the unit that it counts") {
  CHECK(annealing({}).at(5, 10, 99) == near(0.4));
  CHECK(annealing({{"UNIT", text_config("epoch")}}).at(5, 99, 10) == near(0.4));
  CHECK(annealing({{"TOTAL_STEPS", text_config("10")}}).at(5, 99, 99) == near(0.4));
}

TEST_CASE("StepAnnealingLR falls along a cosine or a line or not at all") {
  const auto mode = [](const char* name) { return annealing({{"DECAY_MODE", text_config(name)}}); };
  CHECK(mode("cosine").at(2.5, 10) == near(0.4 + 0.4 * 0.70710678118654752440));
  CHECK(mode("linear").at(2.5, 10) == near(0.6));
  CHECK(mode("none").at(2.5, 10) == 0.8);
  CHECK(mode("none").at(1000, 10) == 0.8);
}

TEST_CASE("StepAnnealingLR never goes below MIN_LR and stays there after its end") {
  const Schedule schedule = annealing(
      {{"DECAY_MODE", text_config("linear")}, {"MIN_LR", text_config("0.1")}, {"WARMUP_STEPS", text_config("10")}});
  CHECK(schedule.at(0, 20) == 0.1);  // the warm-up alone would give 0.08
  CHECK(schedule.at(1, 20) == near(0.16));
  CHECK(schedule.at(18, 20) == near(0.16));
  CHECK(schedule.at(19, 20) == 0.1);
  CHECK(schedule.at(20, 20) == 0.1);
  CHECK(schedule.at(1000, 20) == 0.1);
  CHECK(annealing({}).at(1000, 20) == 0);
}

TEST_CASE("a run that ends within the warm-up of StepAnnealingLR divides by nothing") {
  const Schedule schedule = annealing({{"WARMUP_STEPS", text_config("10")}});
  CHECK(schedule.at(9, 10) == near(0.8));
  CHECK(schedule.at(10, 10) == 0);
  CHECK(schedule.at(4, 5) == near(0.4));
  CHECK(schedule.at(10, 5) == 0);
}

TEST_CASE("StepAnnealingLR refuses a warm-up that leaves no time to fall in") {
  PluginUnderTest plugin("gantry-step-annealing-lr");
  const auto message = [&](const char* mode) {
    return plugin.config_error<gantry::LrScheduler>("StepAnnealingLR", map_config({{"WARMUP_STEPS", text_config("10")},
                                                                                   {"TOTAL_STEPS", text_config("10")},
                                                                                   {"DECAY_MODE", text_config(mode)}}));
  };
  CHECK(contains(message("cosine"), "TOTAL_STEPS is 10, WARMUP_STEPS 10"));
  CHECK(message("none") == "nothing was thrown");
}
