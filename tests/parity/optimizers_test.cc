#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <c10/core/GradMode.h>

#include "gantry/optimizer.h"
#include "parity/parity.h"
#include "unit/plugin_under_test.h"

// Optimizers take PyTorch's steps: to the last bit where PyTorch's are fused too, else within rounding.

namespace {

constexpr int kSteps = 50;

enum Change : unsigned { nothing = 0, rate = 1, momentum = 2, own_group = 4 };

struct Case {
  std::vector<std::pair<std::string, gantry::Config>> config;
  std::string torch_options;  ///< the same for PyTorch, as JSON; what both leave out is the default of either
  unsigned changes = nothing;
};

struct Kind {
  const char* library;
  const char* name;
  bool has_fused_kernel = false;
  bool has_weight_decay = true;
  bool fused_wants_all_at_once = false;  ///< PyTorch's breaks where a parameter's first step is later than another's
};

std::vector<gantry::Slot> make_slots(const gantry::Optimizer& optimizer, bool single) {
  std::vector<gantry::Slot> slots;
  const at::ScalarType dtype = single ? at::kFloat : at::kDouble;
  const std::vector<std::pair<std::vector<int64_t>, at::ScalarType>> parameters = {
      {{3, 5}, dtype}, {{1037}, dtype}, {{}, dtype}, {{2, 3, 3, 7}, at::kDouble}};
  for (const auto& [shape, type] : parameters) {
    gantry::Slot slot;
    slot.name = "p" + std::to_string(slots.size());
    slot.group = optimizer.group_of(slot.name);
    slot.parameter = at::randn(shape, type);
    slot.state.resize(optimizer.state_names().size());
    slots.push_back(std::move(slot));
  }
  return slots;
}

/// Gradients that shrink, so that a maximum makes a difference; the second parameter takes no part in some steps.
void set_gradients(std::vector<gantry::Slot>& slots, int step, bool late_start) {
  for (gantry::Slot& slot : slots) slot.gradient = at::randn_like(slot.parameter).mul_(step < 4 ? 1.0 : 0.03);
  if ((step == 0 && late_start) || step == 5 || step == 30) slots[1].gradient = at::Tensor();
}

std::string json_list(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

/// A group of the second and the last parameter, which differ in dtype in single precision.
void add_own_group(const Kind& kind, Case& options, parity::Numbers& numbers) {
  std::vector<std::pair<std::string, gantry::Config>> group = {{"MATCH", list_config({"1$", "^p3"})},
                                                               {"LEARNING_RATE", text_config("0.03")}};
  std::string torch_group = R"({"names": ["p1", "p3"], "lr": 0.03)";
  if (kind.has_weight_decay) {
    group.emplace_back("WEIGHT_DECAY", text_config("0.2"));
    torch_group += R"(, "weight_decay": 0.2)";
  }
  options.config.emplace_back("PARAM_GROUPS", gantry::Config::list({map_config(group)}, {}));
  numbers.texts.emplace_back("own_group", torch_group + "}");
}

parity::Numbers steps_of(const Kind& kind, Case options, bool single) {
  const c10::NoGradGuard no_grad;
  parity::Numbers numbers;
  numbers.texts = {{"optimizer", kind.name}, {"options", options.torch_options}, {"fused", single ? "true" : "false"}};
  if (options.changes & own_group) {
    add_own_group(kind, options, numbers);
  } else {
    numbers.texts.emplace_back("own_group", "{}");
  }
  PluginUnderTest plugin(kind.library);
  auto optimizer = plugin.build<gantry::Optimizer>(kind.name, map_config(options.config));
  REQUIRE(optimizer->groups().size() == (options.changes & own_group ? 2 : 1));
  std::vector<gantry::Slot> slots = make_slots(*optimizer, single);

  std::vector<double> rates, momenta;
  for (const gantry::Slot& slot : slots) numbers.tensors.emplace_back("initial/" + slot.name, slot.parameter.clone());
  for (int step = 0; step < kSteps; ++step) {
    const std::string prefix = std::to_string(step) + "/";
    if (options.changes & rate) {
      rates.push_back(0.015625 * (1 + step % 3));  // exact as text
      for (std::size_t g = 0; g < optimizer->groups().size(); ++g)
        optimizer->groups()[g].set_lr(rates.back() * static_cast<double>(1 + g));
    }
    if (options.changes & momentum) {
      momenta.push_back(0.125 * ((step + 3) % 7));  // also 0
      for (gantry::ParamGroup& group : optimizer->groups()) group.set_momentum(momenta.back());
    }
    set_gradients(slots, step, !(single && kind.fused_wants_all_at_once));
    optimizer->step(slots, gantry::StepScope{});
    for (const gantry::Slot& slot : slots) {
      if (slot.gradient.defined()) numbers.tensors.emplace_back(prefix + "gradient/" + slot.name, slot.gradient);
      numbers.tensors.emplace_back(prefix + "parameter/" + slot.name, slot.parameter.clone());
    }
  }
  numbers.texts.emplace_back("rates", json_list(rates));
  numbers.texts.emplace_back("momenta", json_list(momenta));
  const std::vector<std::string> names = optimizer->state_names();
  for (const gantry::Slot& slot : slots)
    for (std::size_t i = 0; i < names.size(); ++i)
      numbers.tensors.emplace_back("state/" + slot.name + "/" + names[i], slot.state[i]);
  return numbers;
}

/// In double precision beside PyTorch's plain formulas and, where it has a fused kernel, in single precision beside
/// that.
void check(const Kind& kind, const std::vector<Case>& cases) {
  std::vector<parity::Numbers> all;
  for (const Case& options : cases) {
    all.push_back(steps_of(kind, options, false));
    if (kind.has_fused_kernel) all.push_back(steps_of(kind, options, true));
  }
  parity::compare("optimizers.py", all);
}

gantry::Config yes() { return text_config("true"); }
gantry::Config number(const char* text) { return text_config(text); }

const char kFirstOrder[] = "gantry-first-order-optimizers";

void check_adam(const char* name) {
  check({"gantry-adam", name, true},
        {{{}, "{}"},
         {{{"WEIGHT_DECAY", number("0")}}, R"({"weight_decay": 0})", rate},
         {{{"WEIGHT_DECAY", number("0.1")}}, R"({"weight_decay": 0.1})", rate | momentum | own_group},
         {{{"AMSGRAD", yes()}}, R"({"amsgrad": true})", rate},
         {{{"AMSGRAD", yes()},
           {"WEIGHT_DECAY", number("0.3")},
           {"BETAS", list_config({"0.8", "0.95"})},
           {"EPS", number("1e-3")},
           {"LEARNING_RATE", number("0.02")}},
          R"({"amsgrad": true, "weight_decay": 0.3, "betas": [0.8, 0.95], "eps": 1e-3, "lr": 0.02})",
          own_group}});
}

}  // namespace

TEST_CASE("SGD takes the steps of PyTorch's to the last bit") {
  const auto lr = [](std::vector<std::pair<std::string, gantry::Config>> keys) {
    keys.emplace_back("LEARNING_RATE", number("0.05"));
    return keys;
  };
  check({"gantry-sgd", "SGD", true, true, true},
        {{lr({}), R"({"lr": 0.05})"},
         {lr({{"WEIGHT_DECAY", number("0.1")}}), R"({"lr": 0.05, "weight_decay": 0.1})", rate | own_group},
         {lr({{"MOMENTUM", number("0.9")}}), R"({"lr": 0.05, "momentum": 0.9})", rate},
         {lr({{"MOMENTUM", number("0.9")}, {"DAMPENING", number("0.3")}, {"WEIGHT_DECAY", number("0.05")}}),
          R"({"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05})", own_group},
         {lr({{"MOMENTUM", number("0.9")}, {"NESTEROV", yes()}, {"WEIGHT_DECAY", number("0.05")}}),
          R"({"lr": 0.05, "momentum": 0.9, "nesterov": true, "weight_decay": 0.05})", rate},
         {lr({{"MOMENTUM", number("0.9")}, {"NESTEROV", yes()}}), R"({"lr": 0.05, "momentum": 0.9, "nesterov": true})",
          momentum | own_group}});
}

TEST_CASE("Adam takes the steps of PyTorch's to the last bit") { check_adam("Adam"); }

TEST_CASE("AdamW takes the steps of PyTorch's to the last bit") { check_adam("AdamW"); }

TEST_CASE("Adagrad takes the steps of PyTorch's to the last bit") {
  check({kFirstOrder, "Adagrad", true},
        {{{}, "{}"},
         {{{"WEIGHT_DECAY", number("0.1")}}, R"({"weight_decay": 0.1})", rate | own_group},
         {{{"LEARNING_RATE", number("0.1")},
           {"LEARNING_RATE_DECAY", number("0.05")},
           {"INITIAL_ACCUMULATOR_VALUE", number("0.2")},
           {"EPS", number("1e-4")}},
          R"({"lr": 0.1, "lr_decay": 0.05, "initial_accumulator_value": 0.2, "eps": 1e-4})",
          own_group}});
}

TEST_CASE("Adamax takes the steps of PyTorch's") {
  check({kFirstOrder, "Adamax"},
        {{{}, "{}"},
         {{{"WEIGHT_DECAY", number("0.1")}}, R"({"weight_decay": 0.1})", rate | momentum | own_group},
         {{{"LEARNING_RATE", number("0.02")}, {"BETAS", list_config({"0.8", "0.95"})}, {"EPS", number("1e-3")}},
          R"({"lr": 0.02, "betas": [0.8, 0.95], "eps": 1e-3})",
          own_group}});
}

TEST_CASE("Adadelta takes the steps of PyTorch's") {
  check({kFirstOrder, "Adadelta"},
        {{{}, "{}"},
         {{{"WEIGHT_DECAY", number("0.1")}}, R"({"weight_decay": 0.1})", rate | own_group},
         {{{"LEARNING_RATE", number("0.5")}, {"RHO", number("0.7")}, {"EPS", number("1e-4")}},
          R"({"lr": 0.5, "rho": 0.7, "eps": 1e-4})",
          own_group}});
}

TEST_CASE("RMSprop takes the steps of PyTorch's") {
  check({kFirstOrder, "RMSprop"},
        {{{}, "{}"},
         {{{"WEIGHT_DECAY", number("0.1")}}, R"({"weight_decay": 0.1})", rate | own_group},
         {{{"CENTERED", yes()}, {"ALPHA", number("0.9")}, {"EPS", number("1e-4")}},
          R"({"centered": true, "alpha": 0.9, "eps": 1e-4})",
          rate},
         {{{"MOMENTUM", number("0.9")}}, R"({"momentum": 0.9})", momentum | own_group},
         {{{"MOMENTUM", number("0.8")}, {"CENTERED", yes()}, {"LEARNING_RATE", number("0.02")}},
          R"({"momentum": 0.8, "centered": true, "lr": 0.02})",
          own_group}});
}

TEST_CASE("ASGD takes the steps of PyTorch's and averages as it does") {
  check({kFirstOrder, "ASGD"},
        {{{}, "{}"},
         {{{"WEIGHT_DECAY", number("0.1")}, {"T0", number("10")}},
          R"({"weight_decay": 0.1, "t0": 10})",
          rate | own_group},
         {{{"LEARNING_RATE", number("0.1")}, {"LAMBD", number("0.05")}, {"ALPHA", number("0.6")}, {"T0", number("0")}},
          R"({"lr": 0.1, "lambd": 0.05, "alpha": 0.6, "t0": 0})",
          own_group}});
}

TEST_CASE("Rprop takes the steps of PyTorch's") {
  check({kFirstOrder, "Rprop", false, false}, {{{}, "{}"},
                                               {{{"LEARNING_RATE", number("0.1")},
                                                 {"ETAS", list_config({"0.3", "1.7"})},
                                                 {"STEP_SIZES", list_config({"0.05", "0.15"})}},
                                                R"({"lr": 0.1, "etas": [0.3, 1.7], "step_sizes": [0.05, 0.15]})",
                                                rate | own_group}});
}
