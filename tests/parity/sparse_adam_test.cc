#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <c10/core/GradMode.h>

#include "gantry/optimizer.h"
#include "parity/parity.h"
#include "unit/messages.h"
#include "unit/plugin_under_test.h"

namespace {

constexpr int kSteps = 50;

gantry::Slot embedding(const std::string& name, int64_t group, std::vector<int64_t> shape) {
  gantry::Slot slot;
  slot.name = name;
  slot.group = group;
  slot.parameter = at::randn(shape, at::kDouble);
  slot.state.resize(3);
  return slot;
}

/// As of an embedding that looked up `count` rows, some of them more than once.
at::Tensor sparse_gradient(const at::Tensor& parameter, int64_t count) {
  const at::Tensor rows = at::randint(parameter.size(0), {1, count}, at::kLong);
  return at::sparse_coo_tensor(rows, at::randn({count, parameter.size(1)}, at::kDouble), parameter.sizes());
}

std::unique_ptr<gantry::Optimizer> two_groups(const std::vector<std::pair<std::string, gantry::Config>>& config) {
  auto optimizer = PluginUnderTest("gantry-sparse-adam").build<gantry::Optimizer>("SparseAdam", map_config(config));
  gantry::ParamGroup second = optimizer->groups()[0];
  second.set_lr(0.05);
  optimizer->groups().push_back(second);
  return optimizer;
}

parity::Numbers steps_of(const std::vector<std::pair<std::string, gantry::Config>>& config, const std::string& torch) {
  const c10::NoGradGuard no_grad;
  at::manual_seed(5);
  auto optimizer = two_groups(config);
  std::vector<gantry::Slot> slots = {embedding("p0", 0, {30, 4}), embedding("p1", 1, {50, 3})};
  parity::Numbers numbers;
  numbers.texts = {{"options", torch}};
  for (const gantry::Slot& slot : slots) numbers.tensors.emplace_back("initial/" + slot.name, slot.parameter.clone());
  for (int step = 0; step < kSteps; ++step) {
    const std::string prefix = std::to_string(step) + "/";
    // Sometimes one takes no part, or looks up nothing.
    slots[0].gradient = sparse_gradient(slots[0].parameter, step == 9 ? 0 : 12);
    slots[1].gradient = step == 7 ? at::Tensor() : sparse_gradient(slots[1].parameter, 9);
    for (const gantry::Slot& slot : slots) {
      if (!slot.gradient.defined()) continue;
      numbers.tensors.emplace_back(prefix + "rows/" + slot.name, slot.gradient._indices().clone());
      numbers.tensors.emplace_back(prefix + "values/" + slot.name, slot.gradient._values().clone());
    }
    optimizer->step(slots, gantry::StepScope{});
    for (const gantry::Slot& slot : slots)
      numbers.tensors.emplace_back(prefix + "parameter/" + slot.name, slot.parameter.clone());
  }
  const std::vector<std::string> names = optimizer->state_names();
  for (const gantry::Slot& slot : slots)
    for (std::size_t i = 0; i < names.size(); ++i)
      numbers.tensors.emplace_back("state/" + slot.name + "/" + names[i], slot.state[i]);
  return numbers;
}

}  // namespace

TEST_CASE("SparseAdam takes the steps of PyTorch's on sparse embeddings in two groups") {
  parity::compare("sparse_adam.py",
                  {steps_of({}, "{}"), steps_of({{"LEARNING_RATE", text_config("0.02")},
                                                 {"BETAS", list_config({"0.8", "0.95"})},
                                                 {"EPS", text_config("1e-3")}},
                                                R"({"lr": 0.02, "betas": [0.8, 0.95], "eps": 1e-3})")});
}

TEST_CASE("SparseAdam refuses a dense gradient by the parameter and changes nothing") {
  const c10::NoGradGuard no_grad;
  auto optimizer = two_groups({});
  std::vector<gantry::Slot> slots = {embedding("bag.weight", 0, {30, 4}), embedding("head.bias", 1, {50, 3})};
  slots[0].gradient = sparse_gradient(slots[0].parameter, 12);
  slots[1].gradient = at::randn({50, 3}, at::kDouble);
  const at::Tensor before = slots[0].parameter.clone();
  const std::string message = message_of([&] { optimizer->step(slots, gantry::StepScope{}); });
  CHECK(contains(message, "that of head.bias is dense"));
  CHECK(contains(message, "Use AdamW"));
  CHECK(contains(message, "EmbeddingBag with SPARSE: true"));
  CHECK(slots[0].parameter.equal(before));
  CHECK_FALSE(slots[0].state[0].defined());
}

TEST_CASE("SparseAdam leaves everything as it is where a step found infinities and divides by the scale elsewhere") {
  const c10::NoGradGuard no_grad;
  auto optimizer = two_groups({}), scaled = two_groups({});
  std::vector<gantry::Slot> slots = {embedding("bag.weight", 0, {30, 4})};
  std::vector<gantry::Slot> others = slots;
  others[0].parameter = slots[0].parameter.clone();
  slots[0].gradient = sparse_gradient(slots[0].parameter, 12);
  others[0].gradient = slots[0].gradient.mul(8);
  const at::Tensor before = slots[0].parameter.clone();

  gantry::StepScope scope;
  scope.grad_scale = at::randn({}).zero_().add(8);
  scope.found_inf = at::randn({}).zero_().add(1);
  scaled->step(others, scope);
  CHECK(others[0].parameter.equal(before));
  scope.found_inf->zero_();
  scaled->step(others, scope);
  optimizer->step(slots, gantry::StepScope{});
  CHECK_FALSE(slots[0].parameter.equal(before));
  CHECK(others[0].parameter.equal(slots[0].parameter));
}
