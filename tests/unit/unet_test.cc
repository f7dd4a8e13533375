#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "gantry/denoiser.h"
#include "gantry/model.h"
#include "unit/plugin_under_test.h"

namespace {

struct Network {
  std::shared_ptr<gantry::Module> module;
  gantry::Denoiser* denoiser;

  at::Tensor operator()(const at::Tensor& x, const at::Tensor& time, const at::Tensor& classes = {}) const {
    return denoiser->denoise(x, time, classes);
  }
};

Network build(std::vector<std::pair<std::string, gantry::Config>> keys) {
  static PluginUnderTest plugin("gantry-unet");
  std::shared_ptr<gantry::Module> module = plugin.build<gantry::Module>("UNet", map_config(std::move(keys)));
  auto* denoiser = dynamic_cast<gantry::Denoiser*>(module.get());
  REQUIRE(denoiser != nullptr);
  return {std::move(module), denoiser};
}

/// What begins at zero would hide the rest.
void randomise(const Network& network) {
  const c10::NoGradGuard no_grad;
  for (const gantry::NamedParameter& parameter : gantry::named_parameters(*network.module))
    parameter.tensor.normal_(0, 0.3);
}

}  // namespace

TEST_CASE("UNet predicts something of the shape of its input whatever that is") {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {2, 1, 28, 28}, {1, 1, 32, 32}, {3, 1, 30, 27}, {1, 1, 5, 9}, {2, 1, 1, 1}, {0, 1, 8, 8}}) {
    const Network network = build({{"WIDTHS", list_config({"8", "12", "20"})}, {"BLOCKS", text_config("2")}});
    randomise(network);
    const at::Tensor out = network(at::randn(shape), at::full({shape[0]}, 0.5));
    CHECK(out.sizes() == at::IntArrayRef(shape));
    CHECK(out.isfinite().all().item<bool>());
  }
  const Network colours = build({{"IN_CHANNELS", text_config("3")}, {"WIDTHS", list_config({"5"})}});
  CHECK(colours(at::randn({1, 3, 4, 6}), at::full({1}, 0.5)).sizes() == at::IntArrayRef({1, 3, 4, 6}));
}

TEST_CASE("gradients reach every parameter of UNet") {
  at::manual_seed(1);
  const Network network = build({{"WIDTHS", list_config({"8", "16", "16"})},
                                 {"NUM_CLASSES", text_config("3")},
                                 {"ATTENTION", text_config("true")}});
  randomise(network);
  network(at::randn({4, 1, 12, 12}), at::linspace(0.1, 0.9, 4), at::arange(4, at::kLong)).square().mean().backward();
  const auto parameters = gantry::named_parameters(*network.module);
  CHECK(parameters.size() > 50);
  for (const gantry::NamedParameter& parameter : parameters) {
    INFO(parameter.name);
    REQUIRE(parameter.tensor.grad().defined());
    CHECK(parameter.tensor.grad().abs().sum().item<double>() > 0);
    CHECK(parameter.tensor.grad().isfinite().all().item<bool>());
  }
}

TEST_CASE("UNet begins with zeros and each of its blocks with what it was given") {
  const Network network = build({{"NUM_CLASSES", text_config("3")}, {"ATTENTION", text_config("true")}});
  CHECK(network(at::randn({2, 1, 28, 28}), at::full({2}, 0.3), at::arange(2, at::kLong)).abs().max().item<double>() ==
        0);
  int zeros = 0;
  for (const gantry::NamedParameter& parameter : gantry::named_parameters(*network.module))
    if (parameter.name.ends_with("conv2.weight") || parameter.name.ends_with("projection.weight"))
      zeros += parameter.tensor.abs().max().item<double>() == 0 ? 1 : 100;
  CHECK(zeros == 9);  // three levels down, three up, two between, and the attention
}

TEST_CASE("what UNet predicts for an image depends on its own time and class and on no other image") {
  const c10::NoGradGuard no_grad;
  at::manual_seed(1);
  const Network network = build(
      {{"WIDTHS", list_config({"8", "16"})}, {"NUM_CLASSES", text_config("3")}, {"ATTENTION", text_config("true")}});
  CHECK(network.denoiser->num_classes() == 3);
  randomise(network);
  const at::Tensor one = at::randn({1, 1, 8, 8}), x = one.expand({4, 1, 8, 8}).clone();
  const at::Tensor time = at::full({4}, 0.5), none = at::full({4}, 3, at::kLong);
  const at::Tensor same = network(x, time, none);
  for (int64_t i = 1; i < 4; ++i) CHECK(same[i].sub(same[0]).abs().max().item<double>() < 1e-4);
  const at::Tensor times = network(x, at::linspace(0.2, 0.8, 4), none),
                   classes = network(x, time, at::arange(4, at::kLong));
  for (int64_t i = 1; i < 4; ++i) {
    CHECK(times[i].sub(times[0]).abs().max().item<double>() > 1e-2);
    CHECK(classes[i].sub(classes[0]).abs().max().item<double>() > 1e-2);
  }
  CHECK(classes[3].sub(same[3]).abs().max().item<double>() < 1e-4);
}

TEST_CASE("UNet drops features in training alone") {
  const c10::NoGradGuard no_grad;
  const Network network = build({{"WIDTHS", list_config({"8"})}, {"DROPOUT", text_config("0.5")}});
  randomise(network);
  const at::Tensor x = at::randn({1, 1, 8, 8}), time = at::full({1}, 0.5);
  CHECK_FALSE(network(x, time).equal(network(x, time)));
  network.module->eval();
  CHECK(network(x, time).equal(network(x, time)));
}

TEST_CASE("UNet says what it was given and what it takes") {
  const Network network = build({});
  CHECK_THROWS_WITH_AS(network(at::zeros({1, 3, 8, 8}), at::full({1}, 0.5)),
                       "UNet takes images [N, 1, H, W] as IN_CHANNELS says; it was given [1, 3, 8, 8]", gantry::Error);
  CHECK_THROWS_AS(network.module->forward(at::zeros({1, 1, 8, 8})), gantry::Error);
}
