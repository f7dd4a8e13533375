#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "gantry/capability.h"
#include "gantry/optimizer.h"
#include "parity/parity.h"
#include "unit/plugin_under_test.h"

// LBFGS beside PyTorch's, on a full batch in float64: the parameters and the number of evaluations after each step.

namespace {

constexpr int kSteps = 50;

struct Case {
  std::string objective;
  std::vector<std::pair<std::string, gantry::Config>> config;
  std::string torch_options;  ///< the same for PyTorch, as JSON
};

/// As lbfgs.py has them.
at::Tensor loss_of(const std::string& objective, const std::vector<at::Tensor>& p, const at::Tensor& x,
                   const at::Tensor& y) {
  if (objective == "rosenbrock") {
    const at::Tensor a = p[0].narrow(0, 0, 3), b = p[0].narrow(0, 1, 3);
    return b.sub(a.mul(a)).pow(2).mul(100).add(a.sub(1).pow(2)).sum();
  }
  if (objective == "wall") return p[0].sub(1).mul(8).exp().mul(at::arange(1, 5)).sum().sub(p[0].sum().mul(4));
  if (objective == "ripples") return p[0].sub(20).pow(2).mul(0.05).add(p[0].mul(2).sin().mul(0.3)).sum();
  if (objective == "hills") return p[0].sub(10).pow(2).mul(0.05).add(p[0].mul(3).sin().mul(0.3)).sum();
  if (objective == "convex")
    return at::linear(x, p[0], p[1]).sub(y).mul(3).cosh().log().mean().add(p[2].sub(1).pow(2).sum().mul(0.01));
  return at::linear(at::linear(x, p[0], p[1]).tanh(), p[2]).sub(y).pow(2).mean();
}

std::vector<at::Tensor> parameters_of(const std::string& objective) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  if (objective != "network" && objective != "convex") return {at::zeros({4}, options).sub(0.7)};
  // The last one takes no part.
  return {at::randn({5, 3}, options), at::randn({5}, options), at::randn({1, 5}, options), at::randn({2, 2}, options)};
}

parity::Numbers steps_of(const Case& options) {
  at::manual_seed(3);
  PluginUnderTest plugin("gantry-lbfgs");
  auto optimizer = plugin.build<gantry::Optimizer>("LBFGS", map_config(options.config));
  auto* closure = dynamic_cast<gantry::ClosureOptimizer*>(optimizer.get());
  auto* stateful = dynamic_cast<gantry::Stateful*>(optimizer.get());
  REQUIRE(closure != nullptr);
  REQUIRE(stateful != nullptr);
  CHECK(optimizer->state_names().empty());

  const at::Tensor x = at::randn({20, 3}, at::kDouble), y = at::randn({20, 1}, at::kDouble);
  std::vector<at::Tensor> parameters = parameters_of(options.objective);
  parity::Numbers numbers;
  numbers.texts = {{"objective", options.objective}, {"options", options.torch_options}};
  numbers.tensors = {{"x", x}, {"y", y}};
  std::vector<gantry::Slot> slots;
  for (at::Tensor& parameter : parameters) {
    gantry::Slot slot;
    slot.name = "p" + std::to_string(slots.size());
    numbers.tensors.emplace_back("initial/" + slot.name, parameter.clone());
    slot.parameter = parameter.requires_grad_(true);
    slots.push_back(std::move(slot));
  }

  int64_t evaluations = 0;
  const std::function<double()> evaluate = [&] {
    const at::AutoGradMode gradients(true);
    ++evaluations;
    const at::Tensor loss = loss_of(options.objective, parameters, x, y);
    loss.backward();
    for (gantry::Slot& slot : slots) {
      slot.gradient = slot.parameter.grad();
      slot.parameter.mutable_grad().reset();
    }
    return loss.item().toDouble();
  };

  const c10::NoGradGuard no_grad;
  for (int step = 0; step < kSteps; ++step) {
    const double loss = evaluate();
    closure->step(slots, loss, evaluate);
    const std::string prefix = std::to_string(step) + "/";
    for (const gantry::Slot& slot : slots)
      numbers.tensors.emplace_back(prefix + slot.name, slot.parameter.detach().clone());
    numbers.tensors.emplace_back(prefix + "evaluations", at::zeros({}, at::kLong).add(evaluations));
    CHECK(stateful->state().integer("func_evals") == evaluations);
  }
  return numbers;
}

void check(const std::vector<Case>& cases) {
  std::vector<parity::Numbers> all;
  for (const Case& options : cases) all.push_back(steps_of(options));
  parity::compare("lbfgs.py", all);
}

}  // namespace

TEST_CASE("LBFGS without a line search takes the steps of PyTorch's") {
  check({
      {"network",
       {{"LEARNING_RATE", text_config("0.1")}, {"MAX_ITER", text_config("3")}, {"HISTORY_SIZE", text_config("4")}},
       R"({"lr": 0.1, "max_iter": 3, "history_size": 4})"},
      {"network",
       {{"LEARNING_RATE", text_config("0.05")}, {"MAX_EVAL", text_config("3")}},
       R"({"lr": 0.05, "max_eval": 3})"},
      // Steps that end by the size of the gradient, of the move, of the loss's change.
      {"network",
       {{"LEARNING_RATE", text_config("0.02")}, {"TOLERANCE_GRAD", text_config("0.05")}},
       R"({"lr": 0.02, "tolerance_grad": 0.05})"},
      {"network",
       {{"LEARNING_RATE", text_config("0.02")}, {"TOLERANCE_CHANGE", text_config("1e-3")}},
       R"({"lr": 0.02, "tolerance_change": 1e-3})"},
      {"rosenbrock",
       {{"LEARNING_RATE", text_config("1e-3")}, {"TOLERANCE_CHANGE", text_config("5e-4")}},
       R"({"lr": 1e-3, "tolerance_change": 5e-4})"},
  });
}

TEST_CASE("LBFGS with the strong Wolfe line search takes the steps of PyTorch's") {
  const auto wolfe = std::make_pair(std::string("LINE_SEARCH_FN"), text_config("strong_wolfe"));
  check({
      {"network", {wolfe, {"MAX_ITER", text_config("2")}}, R"({"max_iter": 2, "line_search_fn": "strong_wolfe"})"},
      // First guesses that are far too long or too short, so that the bracket is narrowed or widened. The search's
      // numbers are rounded a little differently in PyTorch, so this is where steps do not drive that apart.
      {"convex",
       {wolfe,
        {"LEARNING_RATE", text_config("30")},
        {"MAX_ITER", text_config("1")},
        {"MAX_EVAL", text_config("9")},
        {"HISTORY_SIZE", text_config("3")}},
       R"({"lr": 30, "max_iter": 1, "max_eval": 9, "history_size": 3, "line_search_fn": "strong_wolfe"})"},
      {"rosenbrock",
       {wolfe, {"LEARNING_RATE", text_config("0.01")}, {"MAX_ITER", text_config("1")}, {"MAX_EVAL", text_config("8")}},
       R"({"lr": 0.01, "max_iter": 1, "max_eval": 8, "line_search_fn": "strong_wolfe"})"},
      // A guess close to the near end of the bracket; one close to the far end; a hill between two points.
      {"wall",
       {wolfe, {"LEARNING_RATE", text_config("40")}, {"MAX_ITER", text_config("1")}, {"MAX_EVAL", text_config("12")}},
       R"({"lr": 40, "max_iter": 1, "max_eval": 12, "line_search_fn": "strong_wolfe"})"},
      {"ripples",
       {wolfe, {"LEARNING_RATE", text_config("0.1")}, {"MAX_ITER", text_config("1")}, {"MAX_EVAL", text_config("12")}},
       R"({"lr": 0.1, "max_iter": 1, "max_eval": 12, "line_search_fn": "strong_wolfe"})"},
      {"hills",
       {wolfe, {"LEARNING_RATE", text_config("0.1")}, {"MAX_ITER", text_config("1")}, {"MAX_EVAL", text_config("20")}},
       R"({"lr": 0.1, "max_iter": 1, "max_eval": 20, "line_search_fn": "strong_wolfe"})"},
      {"rosenbrock", {wolfe}, R"({"line_search_fn": "strong_wolfe"})"},
      {"rosenbrock",
       {wolfe, {"MAX_ITER", text_config("2")}, {"MAX_EVAL", text_config("1")}},
       R"({"max_iter": 2, "max_eval": 1, "line_search_fn": "strong_wolfe"})"},
  });
}
