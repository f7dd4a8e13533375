#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "gantry/model.h"
#include "parity/parity.h"
#include "unit/plugin_under_test.h"

// A ResNet of ours and the same module tree in PyTorch, with torchvision's names.

namespace {

struct Case {
  std::string depth, stem, in_channels, width;
  std::vector<int64_t> input;
};

std::shared_ptr<gantry::Module> build(const Case& options) {
  return PluginUnderTest("gantry-resnet")
      .build<gantry::Module>("ResNet", map_config({{"DEPTH", text_config(options.depth)},
                                                   {"STEM", text_config(options.stem)},
                                                   {"IN_CHANNELS", text_config(options.in_channels)},
                                                   {"WIDTH", text_config(options.width)}}));
}

parity::Numbers weights_and_features(const Case& options) {
  const c10::NoGradGuard no_grad;
  at::manual_seed(1);
  const auto network = build(options);
  const at::Tensor input = at::randn(options.input);
  network->train();
  for (int i = 0; i < 3; ++i) network->forward(at::randn(options.input).mul(2).add(0.5));  // statistics that differ
  network->eval();

  parity::Numbers numbers;
  numbers.texts = {
      {"depth", options.depth}, {"stem", options.stem}, {"in_channels", options.in_channels}, {"width", options.width}};
  for (const auto& [name, tensor, aliases] : gantry::named_parameters(*network))
    numbers.tensors.emplace_back("backbone." + name, tensor);
  for (const auto& [name, tensor, aliases] : gantry::named_buffers(*network))
    numbers.tensors.emplace_back("backbone." + name, tensor);
  numbers.tensors.emplace_back("input", input);
  const at::Tensor features = network->forward(input);
  CHECK(features.sizes() == at::IntArrayRef({options.input[0], network->out_features()}));
  numbers.tensors.emplace_back("features", features);
  return numbers;
}

}  // namespace

TEST_CASE("ResNet has torchvision's names and computes what PyTorch does with its weights") {
  parity::compare("resnet.py", {weights_and_features({"18", "imagenet", "3", "64", {2, 3, 64, 64}}),
                                weights_and_features({"18", "cifar", "1", "16", {4, 1, 28, 28}}),
                                weights_and_features({"34", "imagenet", "3", "8", {2, 3, 65, 47}})});
}

TEST_CASE("ResNet begins with weights of the size that He et al propose") {
  at::manual_seed(1);  // LibTorch's own first seed is another in each process
  const auto network = build({"18", "cifar", "3", "64", {}});
  int convolutions = 0, norms = 0;
  for (const auto& [name, tensor, aliases] : gantry::named_parameters(*network)) {
    CAPTURE(name);
    if (tensor.dim() == 4) {
      const auto fan_out = static_cast<double>(tensor.size(0) * tensor.size(2) * tensor.size(3));
      CHECK(tensor.std().item<double>() == doctest::Approx(std::sqrt(2 / fan_out)).epsilon(0.06));
      CHECK(std::abs(tensor.mean().item<double>()) < 0.05 * std::sqrt(2 / fan_out));
      ++convolutions;
    } else {
      const double expected = name.ends_with("weight") ? 1 : 0;
      CHECK(tensor.eq(expected).all().item<bool>());
      ++norms;
    }
  }
  CHECK(convolutions == 20);
  CHECK(norms == 40);
}
