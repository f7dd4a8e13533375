#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "gantry/model.h"
#include "parity/parity.h"
#include "unit/plugin_under_test.h"

// Losses are those of torch.nn.functional, and so are their gradients.

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

struct Case {
  const char* library;
  const char* name;
  Keys config;
  std::string function, options;  ///< PyTorch's, its options as JSON
};

/// With the prediction as it is and in double precision.
void add(std::vector<parity::Numbers>& all, const Case& one, const at::Tensor& values, const at::Tensor& target) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const std::shared_ptr<gantry::Loss> loss =
        PluginUnderTest(one.library).build<gantry::Loss>(one.name, map_config(one.config));
    const at::Tensor prediction = values.to(dtype).clone().requires_grad_();
    const at::Tensor fitting = target.is_floating_point() ? target.to(dtype) : target;
    const at::Tensor result = loss->forward(prediction, fitting);
    result.backward();
    parity::Numbers numbers;
    numbers.texts = {{"function", one.function}, {"options", one.options}};
    numbers.tensors = {{"prediction", prediction.detach()},
                       {"target", fitting},
                       {"loss", result.detach()},
                       {"gradient", prediction.grad()}};
    all.push_back(std::move(numbers));
  }
}

}  // namespace

TEST_CASE("CrossEntropy and its gradient are PyTorch's to the last bit") {
  at::manual_seed(1);
  std::vector<parity::Numbers> all;
  const std::vector<std::pair<Keys, std::string>> options = {
      {{}, "{}"},
      {{{"LABEL_SMOOTHING", text_config("0.1")}}, R"({"label_smoothing": 0.1})"},
      {{{"WEIGHT", list_config({"1", "0.5", "2", "0"})}}, R"({"weight": [1, 0.5, 2, 0]})"},
      {{{"IGNORE_INDEX", text_config("2")}}, R"({"ignore_index": 2})"},
      {{{"LABEL_SMOOTHING", text_config("0.3")},
        {"WEIGHT", list_config({"1", "0.5", "2", "0.1"})},
        {"IGNORE_INDEX", text_config("0")}},
       R"({"label_smoothing": 0.3, "weight": [1, 0.5, 2, 0.1], "ignore_index": 0})"}};
  for (const auto& [config, torch_options] : options) {
    const Case one{"gantry-cross-entropy", "CrossEntropy", config, "cross_entropy", torch_options};
    add(all, one, at::randn({33, 4}), at::randint(0, 4, {33}, at::kLong));
    add(all, one, at::randn({2, 4, 5, 3}), at::randint(0, 4, {2, 5, 3}, at::kLong));
  }
  at::Tensor target = at::randint(0, 4, {33}, at::kLong);
  target[5] = -100;
  add(all, {"gantry-cross-entropy", "CrossEntropy", {}, "cross_entropy", "{}"}, at::randn({33, 4}), target);
  parity::compare("losses.py", all);
}

TEST_CASE("MSELoss and L1Loss and their gradients are PyTorch's to the last bit") {
  at::manual_seed(1);
  std::vector<parity::Numbers> all;
  for (const auto& shape : {std::vector<int64_t>{33}, {33, 4}, {2, 3, 4, 5}}) {
    add(all, {"gantry-losses", "MSELoss", {}, "mse_loss", "{}"}, at::randn(shape), at::randn(shape));
    add(all, {"gantry-losses", "L1Loss", {}, "l1_loss", "{}"}, at::randn(shape), at::randn(shape));
  }
  parity::compare("losses.py", all);
}

TEST_CASE("BCELoss and its gradient are PyTorch's to the last bit with logits and with probabilities") {
  at::manual_seed(1);
  std::vector<parity::Numbers> all;
  const std::vector<int64_t> shape = {33, 3};
  const auto logits = [&](const Keys& config, const char* torch_options) {
    const Case one{"gantry-losses", "BCELoss", config, "binary_cross_entropy_with_logits", torch_options};
    add(all, one, at::randn(shape).mul(5), at::randint(0, 2, shape, at::kFloat));
    add(all, one, at::randn(shape), at::rand(shape));
  };
  logits({}, "{}");
  logits({{"POS_WEIGHT", text_config("3")}}, R"({"pos_weight": [3]})");
  logits({{"POS_WEIGHT", list_config({"3", "0.5", "1"})}}, R"({"pos_weight": [3, 0.5, 1]})");
  const Keys probabilities = {{"FROM_LOGITS", text_config("false")}};
  add(all, {"gantry-losses", "BCELoss", probabilities, "binary_cross_entropy", "{}"}, at::rand(shape),
      at::randint(0, 2, shape, at::kFloat));
  parity::compare("losses.py", all);
}
