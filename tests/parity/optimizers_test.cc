#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <c10/core/GradMode.h>

#include "gantry/optimizer.h"
#include "parity/parity.h"
#include "unit/plugin_under_test.h"

// Adam and AdamW take PyTorch's steps to the last bit. SGD's are in e2e/optimizer_test.cc.

namespace {

constexpr int kSteps = 12;

struct Case {
  std::vector<std::pair<std::string, gantry::Config>> config;
  std::string torch_options;  ///< the same for PyTorch, as JSON; what both leave out is the default of either
  bool changing_rate;
};

std::vector<gantry::Slot> make_slots(std::size_t state_size) {
  std::vector<gantry::Slot> slots;
  const std::vector<std::pair<std::vector<int64_t>, at::ScalarType>> parameters = {
      {{3, 5}, at::kFloat}, {{1037}, at::kFloat}, {{}, at::kFloat}, {{2, 3, 3, 7}, at::kDouble}};
  for (const auto& [shape, dtype] : parameters) {
    gantry::Slot slot;
    slot.name = "p" + std::to_string(slots.size());
    slot.parameter = at::randn(shape, dtype);
    slot.state.resize(state_size);
    slots.push_back(std::move(slot));
  }
  return slots;
}

/// Gradients that shrink, so that AMSGRAD makes a difference; the second parameter takes no part in some steps.
void set_gradients(std::vector<gantry::Slot>& slots, int step) {
  for (gantry::Slot& slot : slots) slot.gradient = at::randn_like(slot.parameter).mul_(step < 4 ? 1.0 : 0.03);
  if (step == 0 || step == 5) slots[1].gradient = at::Tensor();
}

parity::Numbers steps_of(const std::string& name, const Case& options) {
  const c10::NoGradGuard no_grad;
  PluginUnderTest plugin("gantry-adam");
  auto optimizer = plugin.build<gantry::Optimizer>(name, map_config(options.config));
  const std::vector<std::string> names = optimizer->state_names();
  std::vector<gantry::Slot> slots = make_slots(names.size());

  parity::Numbers numbers;
  numbers.texts = {{"optimizer", name}, {"options", options.torch_options}};
  std::string rates;
  for (const gantry::Slot& slot : slots) numbers.tensors.emplace_back("initial/" + slot.name, slot.parameter.clone());
  for (int step = 0; step < kSteps; ++step) {
    const std::string prefix = std::to_string(step) + "/";
    if (options.changing_rate) {
      optimizer->groups()[0].set_lr(0.01 * (1 + step % 3));
      rates += (step > 0 ? " " : "") + std::to_string(0.01 * (1 + step % 3));
    }
    set_gradients(slots, step);
    optimizer->step(slots, gantry::StepScope{});
    for (const gantry::Slot& slot : slots) {
      if (slot.gradient.defined()) numbers.tensors.emplace_back(prefix + "gradient/" + slot.name, slot.gradient);
      numbers.tensors.emplace_back(prefix + "parameter/" + slot.name, slot.parameter.clone());
    }
  }
  numbers.texts.emplace_back("rates", rates);
  for (const gantry::Slot& slot : slots)
    for (std::size_t i = 0; i < names.size(); ++i)
      numbers.tensors.emplace_back("state/" + slot.name + "/" + names[i], slot.state[i]);
  return numbers;
}

void check(const std::string& name, const std::vector<Case>& cases) {
  std::vector<parity::Numbers> all;
  for (const Case& options : cases) all.push_back(steps_of(name, options));
  parity::compare("optimizers.py", all);
}

gantry::Config yes() { return text_config("true"); }

}  // namespace

TEST_CASE("Adam takes the steps of PyTorch's to the last bit") {
  check("Adam", {{{}, "{}", false},
                 {{{"WEIGHT_DECAY", text_config("0.1")}}, R"({"weight_decay": 0.1})", true},
                 {{{"AMSGRAD", yes()}}, R"({"amsgrad": true})", true},
                 {{{"AMSGRAD", yes()},
                   {"WEIGHT_DECAY", text_config("0.01")},
                   {"BETAS", list_config({"0.8", "0.95"})},
                   {"EPS", text_config("1e-3")},
                   {"LEARNING_RATE", text_config("0.02")}},
                  R"({"amsgrad": true, "weight_decay": 0.01, "betas": [0.8, 0.95], "eps": 1e-3, "lr": 0.02})",
                  false}});
}

TEST_CASE("AdamW takes the steps of PyTorch's to the last bit") {
  check("AdamW", {{{}, "{}", false},
                  {{{"WEIGHT_DECAY", text_config("0")}}, R"({"weight_decay": 0})", true},
                  {{{"AMSGRAD", yes()}}, R"({"amsgrad": true})", true},
                  {{{"AMSGRAD", yes()},
                    {"WEIGHT_DECAY", text_config("0.3")},
                    {"BETAS", list_config({"0.8", "0.95"})},
                    {"EPS", text_config("1e-3")},
                    {"LEARNING_RATE", text_config("0.02")}},
                   R"({"amsgrad": true, "weight_decay": 0.3, "betas": [0.8, 0.95], "eps": 1e-3, "lr": 0.02})",
                   false}});
}
