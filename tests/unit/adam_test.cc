#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <doctest/doctest.h>

#include "gantry/optimizer.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

// The numbers of its steps are compared with PyTorch's in tests/parity.

namespace {

std::unique_ptr<gantry::Optimizer> adam(std::vector<std::pair<std::string, gantry::Config>> keys = {}) {
  return PluginUnderTest("gantry-adam").build<gantry::Optimizer>("Adam", map_config(std::move(keys)));
}

gantry::Slot slot_of(const gantry::Optimizer& optimizer, int64_t group = 0) {
  gantry::Slot slot;
  slot.name = "weight";
  slot.group = group;
  slot.parameter = at::ones({4});
  slot.gradient = at::full({4}, 0.5);
  slot.state.resize(optimizer.state_names().size());
  return slot;
}

}  // namespace

TEST_CASE("a step of Adam that is left out for its infinite gradients changes nothing and is not counted") {
  const c10::NoGradGuard no_grad;
  auto optimizer = adam({{"WEIGHT_DECAY", text_config("0.1")}, {"AMSGRAD", text_config("true")}});
  std::vector<gantry::Slot> slots = {slot_of(*optimizer)}, undisturbed = {slot_of(*optimizer)};
  const auto step = [&](std::vector<gantry::Slot>& of, double found_inf) {
    gantry::StepScope scope;
    scope.found_inf = at::scalar_tensor(found_inf, at::kFloat);
    optimizer->step(of, scope);
  };
  const auto same = [&] {
    bool equal = slots[0].parameter.equal(undisturbed[0].parameter);
    for (std::size_t i = 0; i < slots[0].state.size(); ++i)
      equal = equal && slots[0].state[i].equal(undisturbed[0].state[i]);
    return equal;
  };
  step(slots, 1);  // the very first one
  CHECK(slots[0].parameter.equal(at::ones({4})));
  step(slots, 0);
  step(undisturbed, 0);
  CHECK(same());
  CHECK(slots[0].state[0].item<float>() == 1);
  CHECK_FALSE(slots[0].parameter.equal(at::ones({4})));
  step(slots, 1);
  CHECK(same());
  step(slots, 0);
  step(undisturbed, 0);
  CHECK(same());
  CHECK(slots[0].state[0].item<float>() == 2);
}

TEST_CASE("Adam divides gradients by their scale") {
  const c10::NoGradGuard no_grad;
  auto optimizer = adam();
  std::vector<gantry::Slot> scaled = {slot_of(*optimizer)}, plain = {slot_of(*optimizer)};
  scaled[0].gradient.mul_(1024);
  gantry::StepScope scope;
  scope.grad_scale = at::scalar_tensor(1024, at::kFloat);
  scope.found_inf = at::scalar_tensor(0, at::kFloat);
  optimizer->step(scaled, scope);
  optimizer->step(plain, gantry::StepScope{});
  CHECK(scaled[0].state[1].equal(plain[0].state[1]));
  CHECK(scaled[0].parameter.equal(plain[0].parameter));
}

TEST_CASE("Adam leaves parameters without a gradient alone and gives each group its own rate") {
  const c10::NoGradGuard no_grad;
  auto optimizer = adam();
  optimizer->groups().emplace_back("slow", 1e-3);
  optimizer->groups()[0].set_lr(0.1);
  optimizer->groups()[1].set_lr(0.001);
  std::vector<gantry::Slot> slots = {slot_of(*optimizer), slot_of(*optimizer, 1), slot_of(*optimizer)};
  slots[2].gradient = at::Tensor();
  optimizer->step(slots, gantry::StepScope{});
  CHECK(slots[0].parameter[0].item<double>() == doctest::Approx(0.9).epsilon(1e-6));  // a first step is lr long
  CHECK(slots[1].parameter[0].item<double>() == doctest::Approx(0.999).epsilon(1e-6));
  CHECK(slots[2].parameter.equal(at::ones({4})));
  CHECK_FALSE(slots[2].state[0].defined());
}

TEST_CASE("Adam names its state as PyTorch does and AMSGRAD adds to it") {
  CHECK(adam()->state_names() == std::vector<std::string>{"step", "exp_avg", "exp_avg_sq"});
  CHECK(adam({{"AMSGRAD", text_config("true")}})->state_names().back() == "max_exp_avg_sq");
}

TEST_CASE("Adam refuses BETAS that are not two numbers") {
  PluginUnderTest plugin("gantry-adam");
  for (const char* name : {"Adam", "AdamW"}) {
    CHECK(contains(plugin.config_error<gantry::Optimizer>(name, map_config({{"BETAS", list_config({"0.9"})}})),
                   "BETAS is two numbers such as [0.9, 0.999], not 1"));
  }
}
