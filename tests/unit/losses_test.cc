#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "gantry/model.h"
#include "unit/messages.h"
#include "unit/nested_plugins.h"

// What losses compute is compared with PyTorch's in parity/losses_test.cc.

using gantry::Loss;
using gantry::Model;

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

std::shared_ptr<Loss> loss(const std::string& library, const std::string& name, Keys config = {}) {
  return PluginUnderTest(library).build<Loss>(name, map_config(std::move(config)));
}

std::string refusal(const std::shared_ptr<Loss>& loss, const at::Tensor& prediction, const at::Tensor& target) {
  return message_of([&] { loss->forward(prediction, target); });
}

std::shared_ptr<Model> regressor(Keys config) {
  static NestedPlugins plugins({"gantry-regressor", "gantry-mlp", "gantry-losses"});
  config.emplace_back("BACKBONE", component_config("Mlp", {{"INPUT_SIZE", text_config("4")}}));
  return plugins.build<Model>("Regressor", map_config(std::move(config)));
}

gantry::Batch batch_of(const at::Tensor& target) {
  gantry::Batch batch;
  batch.set("img", at::randn({5, 4}));
  batch.set("target", target);
  batch.ids.assign(5, 0);
  return batch;
}

}  // namespace

TEST_CASE("losses of values refuse a target of another shape instead of stretching one over the other") {
  for (const char* name : {"MSELoss", "L1Loss", "BCELoss"}) {
    CAPTURE(name);
    CHECK(contains(refusal(loss("gantry-losses", name), at::zeros({5, 1}), at::zeros({5})),
                   "the prediction has shape [5, 1] and the target [5]"));
    CHECK(refusal(loss("gantry-losses", name), at::zeros({5}), at::zeros({5}, at::kLong)) == "nothing was thrown");
  }
}

TEST_CASE("weights of other lengths than there are classes are refused with both numbers") {
  const Keys two = {{"WEIGHT", list_config({"1", "2"})}};
  CHECK(
      contains(refusal(loss("gantry-cross-entropy", "CrossEntropy", two), at::zeros({5, 3}), at::zeros({5}, at::kLong)),
               "WEIGHT has 2 numbers, but the model tells 3 classes apart"));
  const Keys positive = {{"POS_WEIGHT", list_config({"1", "2"})}};
  CHECK(contains(refusal(loss("gantry-losses", "BCELoss", positive), at::zeros({5, 3}), at::zeros({5, 3})),
                 "POS_WEIGHT has 2 numbers, but the prediction's last dimension has 3"));
  CHECK(contains(
      message_of<gantry::ConfigError>([] {
        loss("gantry-losses", "BCELoss", {{"POS_WEIGHT", list_config({"2"})}, {"FROM_LOGITS", text_config("false")}});
      }),
      "POS_WEIGHT counts with logits alone"));
}

TEST_CASE("the weights of a loss are no part of a model's state") {
  const auto weighted = loss("gantry-cross-entropy", "CrossEntropy", {{"WEIGHT", list_config({"1", "2"})}});
  weighted->forward(at::zeros({5, 2}), at::zeros({5}, at::kLong));
  CHECK(gantry::named_parameters(*weighted).empty());
  CHECK(gantry::named_buffers(*weighted).empty());
}

TEST_CASE("Regressor takes targets with and without a dimension for its one output") {
  at::manual_seed(1);
  const auto model = regressor({});
  const at::Tensor target = at::randn({5});
  gantry::Batch flat = batch_of(target), column = flat;
  column.set("target", target.unsqueeze(1));
  const gantry::Outputs outputs = model->forward(flat, gantry::Mode::train);
  CHECK(outputs.tensor("prediction").sizes() == at::IntArrayRef({5, 1}));
  CHECK(outputs.tensor("loss").equal(model->forward(column, gantry::Mode::train).tensor("loss")));
  const at::Tensor error = outputs.tensor("prediction").squeeze(1).sub(target);
  CHECK(outputs.tensor("loss").item<float>() == doctest::Approx(error.square().mean().item<float>()));
  CHECK(outputs.tensor("loss").requires_grad());
}

TEST_CASE("Regressor predicts several numbers and without targets has no loss") {
  const auto model = regressor({{"OUT_FEATURES", text_config("3")}, {"LOSS", component_config("L1Loss")}});
  gantry::Batch batch = batch_of(at::zeros({5, 3}));
  const gantry::Outputs outputs = model->forward(batch, gantry::Mode::eval);
  CHECK(outputs.tensor("prediction").sizes() == at::IntArrayRef({5, 3}));
  CHECK(outputs.tensor("loss").item<float>() ==
        doctest::Approx(outputs.tensor("prediction").abs().mean().item<float>()));
  batch.erase("target");
  CHECK_FALSE(model->forward(batch, gantry::Mode::eval).has("loss"));
  batch.set("target", at::zeros({5}));
  CHECK(contains(message_of([&] { model->forward(batch, gantry::Mode::train); }), "[5, 3] and the target [5]"));
}
