#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "gantry/optimizer.h"
#include "gantry/slot_batches.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

// What optimizers have in common. The numbers of their steps are compared with PyTorch's in tests/parity.

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

struct Kind {
  std::string library, name;
  Keys keys;
};

const char kFirstOrder[] = "gantry-first-order-optimizers";

std::vector<Kind> all_kinds() {
  const gantry::Config yes = text_config("true"), momentum = text_config("0.9"), decay = text_config("0.1");
  return {{"gantry-adam", "Adam", {{"WEIGHT_DECAY", decay}, {"AMSGRAD", yes}}},
          {"gantry-adam", "AdamW", {{"AMSGRAD", yes}}},
          {"gantry-sgd", "SGD", {{"LEARNING_RATE", text_config("0.1")}, {"MOMENTUM", momentum}}},
          {kFirstOrder, "Adadelta", {{"WEIGHT_DECAY", decay}}},
          {kFirstOrder, "Adagrad", {{"WEIGHT_DECAY", decay}}},
          {kFirstOrder, "Adamax", {{"WEIGHT_DECAY", decay}}},
          {kFirstOrder, "ASGD", {{"WEIGHT_DECAY", decay}, {"T0", text_config("1")}}},
          {kFirstOrder, "RMSprop", {{"MOMENTUM", momentum}, {"CENTERED", yes}}},
          {kFirstOrder, "Rprop", {}}};
}

std::unique_ptr<gantry::Optimizer> build(const Kind& kind) {
  return PluginUnderTest(kind.library).build<gantry::Optimizer>(kind.name, map_config(kind.keys));
}

/// Parameters of two groups and two dtypes.
std::vector<gantry::Slot> slots_of(const gantry::Optimizer& optimizer) {
  std::vector<gantry::Slot> slots;
  for (const char* name : {"weight", "bias", "double.weight"}) {
    gantry::Slot slot;
    slot.name = name;
    slot.group = optimizer.group_of(name);
    slot.parameter = at::ones({4}, slots.size() == 2 ? at::kDouble : at::kFloat);
    slot.state.resize(optimizer.state_names().size());
    slots.push_back(std::move(slot));
  }
  return slots;
}

void set_gradients(std::vector<gantry::Slot>& slots, double value) {
  for (gantry::Slot& slot : slots) slot.gradient = at::full_like(slot.parameter, value);
}

gantry::StepScope scope_of(double found_inf) {
  gantry::StepScope scope;
  scope.found_inf = at::scalar_tensor(found_inf, at::kFloat);
  return scope;
}

bool same(const std::vector<gantry::Slot>& a, const std::vector<gantry::Slot>& b) {
  for (std::size_t s = 0; s < a.size(); ++s) {
    if (!a[s].parameter.equal(b[s].parameter)) return false;
    for (std::size_t i = 0; i < a[s].state.size(); ++i)
      if (!a[s].state[i].equal(b[s].state[i])) return false;
  }
  return true;
}

gantry::Config one_group(Keys group) { return gantry::Config::list({map_config(std::move(group))}, {}); }

}  // namespace

TEST_CASE("a step that is left out for its infinite gradients changes nothing and is not counted") {
  const c10::NoGradGuard no_grad;
  for (const Kind& kind : all_kinds()) {
    CAPTURE(kind.name);
    auto optimizer = build(kind);
    std::vector<gantry::Slot> slots = slots_of(*optimizer), undisturbed = slots_of(*optimizer);
    const auto step = [&](std::vector<gantry::Slot>& of, double gradient, double found_inf) {
      set_gradients(of, gradient);
      optimizer->step(of, scope_of(found_inf));
    };
    const double infinite = std::numeric_limits<double>::infinity();
    step(slots, infinite, 1);  // the very first one
    for (const gantry::Slot& slot : slots) CHECK(slot.parameter.equal(at::ones_like(slot.parameter)));
    for (const double gradient : {0.5, -0.25, 0.125}) {
      step(slots, gradient, 0);
      step(undisturbed, gradient, 0);
      CHECK(same(slots, undisturbed));
      step(slots, infinite, 1);
      step(slots, std::nan(""), 1);
      CHECK(same(slots, undisturbed));
    }
    for (const gantry::Slot& slot : slots) CHECK_FALSE(slot.parameter.equal(at::ones_like(slot.parameter)));
    if (optimizer->state_names()[0] == "step") CHECK(slots[0].state[0].item<float>() == 3);
  }
}

TEST_CASE("gradients are divided by their scale") {
  const c10::NoGradGuard no_grad;
  for (const Kind& kind : all_kinds()) {
    CAPTURE(kind.name);
    auto optimizer = build(kind);
    std::vector<gantry::Slot> scaled = slots_of(*optimizer), plain = slots_of(*optimizer);
    for (const double gradient : {0.5, -0.25}) {
      set_gradients(scaled, 1024 * gradient);
      set_gradients(plain, gradient);
      gantry::StepScope scope = scope_of(0);
      scope.grad_scale = at::scalar_tensor(1024, at::kFloat);
      optimizer->step(scaled, scope);
      optimizer->step(plain, gantry::StepScope{});
      CHECK(same(scaled, plain));
    }
  }
}

TEST_CASE("each group has its own rate and a parameter without a gradient is left alone") {
  const c10::NoGradGuard no_grad;
  for (Kind kind : all_kinds()) {
    CAPTURE(kind.name);
    kind.keys.emplace_back("PARAM_GROUPS", one_group({{"MATCH", list_config({"^bias$"})}}));
    auto optimizer = build(kind);
    std::vector<gantry::Slot> slots = slots_of(*optimizer);
    REQUIRE(slots[1].group == 1);
    optimizer->groups()[0].set_lr(0.01);
    optimizer->groups()[1].set_lr(0.04);
    set_gradients(slots, 0.5);
    slots[2].gradient = at::Tensor();
    optimizer->step(slots, gantry::StepScope{});
    const double slow = 1 - slots[0].parameter[0].item<double>(), fast = 1 - slots[1].parameter[0].item<double>();
    CHECK(fast == doctest::Approx(4 * slow).epsilon(1e-2));
    CHECK(slow > 0);
    CHECK(slots[2].parameter.equal(at::ones_like(slots[2].parameter)));
    CHECK_FALSE(slots[2].state[0].defined());
  }
}

TEST_CASE("each group has its own weight decay or else the optimizer's") {
  const c10::NoGradGuard no_grad;
  for (Kind kind : all_kinds()) {
    if (kind.name == "Rprop") continue;
    CAPTURE(kind.name);
    std::erase_if(kind.keys, [](const auto& key) { return key.first == "WEIGHT_DECAY"; });
    kind.keys.emplace_back("WEIGHT_DECAY", text_config("0.25"));
    gantry::Config group = map_config({{"MATCH", list_config({"bias"})}, {"WEIGHT_DECAY", text_config("0")}});
    gantry::Config other = map_config({{"MATCH", list_config({"double"})}});
    kind.keys.emplace_back("PARAM_GROUPS", gantry::Config::list({group, other}, {}));
    auto optimizer = build(kind);
    CHECK(optimizer->groups()[0].weight_decay() == 0.25);
    CHECK(optimizer->groups()[1].weight_decay() == 0);
    CHECK(optimizer->groups()[2].weight_decay() == 0.25);
    std::vector<gantry::Slot> slots = slots_of(*optimizer);
    set_gradients(slots, 0);
    optimizer->step(slots, gantry::StepScope{});
    CHECK(slots[0].parameter[0].item<double>() < 1);
    CHECK(slots[2].parameter[0].item<double>() < 1);
    if (kind.name == "ASGD") {  // has a decay of its own, LAMBD
      CHECK(slots[1].parameter[0].item<double>() > slots[0].parameter[0].item<double>());
    } else {
      CHECK(slots[1].parameter.equal(at::ones_like(slots[1].parameter)));
    }
  }
}

TEST_CASE("optimizers with a momentum say so and those without have none to cycle") {
  for (Kind kind : all_kinds()) {
    CAPTURE(kind.name);
    kind.keys.emplace_back("PARAM_GROUPS", one_group({{"MATCH", list_config({"bias"})}}));
    const auto optimizer = build(kind);
    const bool expected =
        kind.name != "Adadelta" && kind.name != "Adagrad" && kind.name != "ASGD" && kind.name != "Rprop";
    for (const gantry::ParamGroup& group : optimizer->groups()) {
      if (expected) CHECK(group.momentum() == 0.9);
      if (!expected) CHECK(std::isnan(group.momentum()));
    }
  }
  const Kind plain_sgd{"gantry-sgd", "SGD", {{"LEARNING_RATE", text_config("0.1")}}};
  CHECK(std::isnan(build(plain_sgd)->groups()[0].momentum()));
  const Kind plain_rmsprop{kFirstOrder, "RMSprop", {}};
  CHECK(std::isnan(build(plain_rmsprop)->groups()[0].momentum()));
}

TEST_CASE("optimizers name their state as PyTorch does and options add to it") {
  const auto names = [](const char* library, const char* name, Keys keys = {}) {
    return build({library, name, std::move(keys)})->state_names();
  };
  using Names = std::vector<std::string>;
  CHECK(names("gantry-adam", "Adam") == Names{"step", "exp_avg", "exp_avg_sq"});
  CHECK(names("gantry-adam", "Adam", {{"AMSGRAD", text_config("true")}}).back() == "max_exp_avg_sq");
  CHECK(names("gantry-sgd", "SGD", {{"LEARNING_RATE", text_config("0.1")}}).empty());
  CHECK(names(kFirstOrder, "RMSprop") == Names{"step", "square_avg"});
  CHECK(names(kFirstOrder, "RMSprop", {{"CENTERED", text_config("true")}}) == Names{"step", "square_avg", "grad_avg"});
}

TEST_CASE("a sparse gradient is refused with the parameter's name") {
  const c10::NoGradGuard no_grad;
  for (const Kind& kind : all_kinds()) {
    CAPTURE(kind.name);
    auto optimizer = build(kind);
    std::vector<gantry::Slot> slots = slots_of(*optimizer);
    set_gradients(slots, 0.5);
    slots[1].gradient = slots[1].gradient.to_sparse();
    CHECK(contains(message_of([&] { optimizer->step(slots, gantry::StepScope{}); }),
                   "parameter 'bias' has a sparse gradient, which this optimizer does not take: use SparseAdam"));
    CHECK(slots[0].parameter.equal(at::ones({4})));
  }
}

TEST_CASE("optimizers hold no gradient after a step") {
  const c10::NoGradGuard no_grad;
  for (const Kind& kind : all_kinds()) {
    CAPTURE(kind.name);
    auto optimizer = build(kind);
    std::vector<gantry::Slot> slots = slots_of(*optimizer);
    set_gradients(slots, 0.5);
    optimizer->step(slots, gantry::StepScope{});
    for (const gantry::Slot& slot : slots) CHECK(slot.gradient.use_count() == 1);
  }
}

TEST_CASE("optimizers refuse numbers that do not fit together") {
  const auto error = [](const char* library, const char* name, const char* key, const gantry::Config& value) {
    return PluginUnderTest(library).config_error<gantry::Optimizer>(
        name, map_config({{"LEARNING_RATE", text_config("0.1")}, {key, value}}));
  };
  CHECK(contains(error("gantry-sgd", "SGD", "NESTEROV", text_config("true")), "NESTEROV needs MOMENTUM > 0 and"));
  for (const char* name : {"Adam", "AdamW"})
    CHECK(contains(error("gantry-adam", name, "BETAS", list_config({"0.9"})),
                   "BETAS is two numbers such as [0.9, 0.999], not 1"));
  CHECK(contains(error(kFirstOrder, "Adamax", "BETAS", list_config({"0.9"})), "BETAS is two numbers, not 1"));
  CHECK(
      contains(error(kFirstOrder, "Rprop", "ETAS", list_config({"0.5", "1.2", "3"})), "ETAS is two numbers, not 3"));
  CHECK(contains(error(kFirstOrder, "Rprop", "ETAS", list_config({"1.2", "0.5"})),
                 "ETAS needs a number below 1 and one above 1, not [1.2, 0.5]"));
  CHECK(contains(error(kFirstOrder, "Rprop", "STEP_SIZES", list_config({"2", "1"})), "2 is more than 1"));
  CHECK(contains(error(kFirstOrder, "Rprop", "PARAM_GROUPS",
                       one_group({{"MATCH", list_config({"bias"})}, {"WEIGHT_DECAY", text_config("0.1")}})),
                 "WEIGHT_DECAY"));
}

TEST_CASE("slots are taken together where group and dtype and device are the same and their first step is") {
  std::vector<gantry::Slot> slots;
  const auto add = [&](const char* name, int64_t group, const at::TensorOptions& options, bool begun) {
    gantry::Slot slot;
    slot.name = name;
    slot.group = group;
    slot.parameter = at::empty({2}, options);
    slot.gradient = at::empty({2}, options);
    slot.state.resize(1);
    if (begun) slot.state[0] = at::empty({2}, options);
    slots.push_back(std::move(slot));
  };
  const at::TensorOptions single = at::kFloat, half = at::kHalf, elsewhere = single.device(at::kMeta);
  add("a", 0, single, true);
  add("b", 0, half, true);
  add("c", 1, single, true);
  add("d", 0, single, true);
  add("e", 0, single, false);
  add("f", 0, elsewhere, true);
  add("g", 0, single, true);
  add("h", 1, single, false);
  slots[6].gradient = at::Tensor();

  gantry::SlotBatches batches;
  std::string started, taken;
  for (int step = 0; step < 2; ++step) {
    started += "|";
    batches.for_each(
        slots,
        [&](gantry::Slot& slot) {
          started += slot.name;
          slot.state[0] = at::empty_like(slot.parameter);
        },
        [&](gantry::SlotBatch& batch) {
          for (std::size_t i = 0; i < batch.slots.size(); ++i) {
            taken += batch.slots[i]->name;
            CHECK(batch.slots[i]->group == batch.group);
            CHECK(batch.parameters[i].is_same(batch.slots[i]->parameter));
            CHECK(batch.gradients[i].is_same(batch.slots[i]->gradient));
            CHECK(batch.state[0][i].is_same(batch.slots[i]->state[0]));
          }
          taken += batch.first ? "! " : " ";
        });
  }
  CHECK(started == "|eh|");
  CHECK(taken == "ad b c e! f h! ade b ch f ");
}
