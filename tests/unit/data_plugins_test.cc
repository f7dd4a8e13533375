#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gantry/dataset.h"
#include "gantry/metric.h"
#include "gantry/sampler.h"
#include "gantry/transform.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

using gantry::Batch;
using gantry::Dataset;
using gantry::Metric;
using gantry::Sampler;
using gantry::Transform;

namespace {

gantry::Config normalization(const std::vector<std::string>& mean, const std::vector<std::string>& std) {
  return map_config({{"MEAN", list_config(mean)}, {"STD", list_config(std)}});
}

}  // namespace

TEST_CASE("Normalize computes what PyTorch computes channel by channel to the last bit") {
  auto normalize =
      PluginUnderTest("gantry-normalize")
          .build<Transform>("Normalize", normalization({"0.485", "0.456", "0.406"}, {"0.229", "0.224", "0.225"}));
  const at::Tensor bytes = at::arange(2 * 3 * 256, at::kLong).remainder(256).to(at::kByte).view({2, 3, 16, 16});
  Batch batch;
  batch.set("img", bytes);
  batch.ids = {0, 1};
  normalize->apply_batch(batch, 0, 0);
  const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
  for (int64_t c = 0; c < 3; ++c) {
    const at::Tensor expected = bytes.select(1, c).to(at::kFloat).div(255).sub(mean[c]).div(std[c]);
    CHECK(batch.tensor("img").select(1, c).equal(expected));
  }
  gantry::Sample sample{{"img", bytes.select(0, 1)}};
  gantry::CounterRng rng(0, 0, 0);
  normalize->apply(sample, rng);
  CHECK(sample.tensor("img").equal(batch.tensor("img").select(0, 1)));
}

TEST_CASE("Normalize takes floating point values as they are and does not write to its input") {
  auto normalize = PluginUnderTest("gantry-normalize").build<Transform>("Normalize", normalization({"0.5"}, {"2"}));
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor input = at::tensor({0.5, 4.5}, dtype).view({2, 1});
    Batch batch;
    batch.set("img", input);
    batch.ids = {0, 1};
    normalize->apply_batch(batch, 0, 0);
    CHECK(batch.tensor("img").equal(at::tensor({0.0, 2.0}, dtype).view({2, 1})));
    CHECK(input.equal(at::tensor({0.5, 4.5}, dtype).view({2, 1})));
  }
}

TEST_CASE("Normalize refuses lists of other lengths than there are channels and names both numbers") {
  PluginUnderTest plugin("gantry-normalize");
  const std::string lengths = plugin.config_error<Transform>("Normalize", normalization({"0", "0"}, {"1", "1", "1"}));
  CHECK(contains(lengths, "STD has 3 numbers, MEAN has 2"));
  auto normalize = plugin.build<Transform>("Normalize", normalization({"0", "0"}, {"1", "1"}));
  Batch batch;
  batch.ids = {0};
  batch.set("img", at::zeros({1, 3, 2, 2}));
  CHECK(contains(message_of<gantry::ConfigError>([&] { normalize->apply_batch(batch, 0, 0); }),
                 "MEAN has 2 numbers, but 'img' has 3"));
  batch.set("img", at::zeros({1, 2, 2, 2}, at::kLong));
  CHECK(contains(message_of<gantry::ConfigError>([&] { normalize->apply_batch(batch, 0, 0); }), "'img'"));
}

TEST_CASE("the default sampler keeps the order or shuffles it by seed and epoch") {
  auto sampler = PluginUnderTest("gantry-default-sampler").build<Sampler>("DefaultSampler", map_config({}));
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  CHECK(sampler->size(100) == 100);
  CHECK(sampler->order({100, 1, 1, false}) == all);
  const auto order = sampler->order({100, 1, 1, true});
  CHECK(order != all);
  CHECK(sampler->order({100, 1, 1, true}) == order);
  CHECK(sampler->order({100, 1, 2, true}) != order);
  CHECK(sampler->order({100, 2, 1, true}) != order);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == all);
  CHECK(sampler->order({0, 1, 1, true}).empty());
}

TEST_CASE("the default sampler makes every order of three samples about equally often") {
  auto sampler = PluginUnderTest("gantry-default-sampler").build<Sampler>("DefaultSampler", map_config({}));
  std::vector<int> seen(27);
  for (int64_t epoch = 1; epoch <= 6000; ++epoch) {
    const auto order = sampler->order({3, 9, epoch, true});
    ++seen[static_cast<std::size_t>(order[0] * 9 + order[1] * 3 + order[2])];
  }
  std::vector<int> counts;
  for (const int count : seen) {
    if (count > 0) counts.push_back(count);
  }
  CHECK(counts.size() == 6);
  CHECK(*std::min_element(counts.begin(), counts.end()) > 850);
  CHECK(*std::max_element(counts.begin(), counts.end()) < 1150);
}

TEST_CASE("Synthetic is a pure function of seed and index and mode") {
  PluginUnderTest plugin("gantry-synthetic");
  const auto config = [](const std::string& mode) {
    return map_config({{"SIZE", text_config("64")}, {"SHAPE", list_config({"2", "5"})}, {"MODE", text_config(mode)}});
  };
  auto train = plugin.build<Dataset>("Synthetic", config("train"), 1);
  auto again = plugin.build<Dataset>("Synthetic", config("train"), 1);
  auto eval = plugin.build<Dataset>("Synthetic", config("eval"), 1);
  auto other = plugin.build<Dataset>("Synthetic", config("train"), 2);
  CHECK(train->size() == 64);
  std::vector<int64_t> all(64);
  std::iota(all.begin(), all.end(), 0);
  const Batch whole = train->get_batch(all);
  CHECK(whole.tensor("img").sizes() == at::IntArrayRef({64, 2, 5}));
  CHECK((whole.tensor("img").scalar_type() == at::kFloat));
  const std::vector<int64_t> one = {17};
  CHECK(again->get_batch(one).tensor("img").select(0, 0).equal(whole.tensor("img").select(0, 17)));
  CHECK(again->get_batch(one).tensor("label").select(0, 0).equal(whole.tensor("label").select(0, 17)));
  CHECK_FALSE(eval->get_batch(all).tensor("img").equal(whole.tensor("img")));
  CHECK_FALSE(other->get_batch(all).tensor("img").equal(whole.tensor("img")));
}

TEST_CASE("the classes of Synthetic can be told apart by their means in data not seen before") {
  PluginUnderTest plugin("gantry-synthetic");
  const auto batch = [&](const std::string& mode, const std::string& separation) {
    auto dataset = plugin.build<Dataset>("Synthetic", map_config({{"NUM_CLASSES", text_config("4")},
                                                                  {"SEPARATION", text_config(separation)},
                                                                  {"MODE", text_config(mode)}}));
    std::vector<int64_t> all(400);
    std::iota(all.begin(), all.end(), 0);
    return dataset->get_batch(all);
  };
  // The nearest class mean of the training part, tried on the evaluation part.
  const auto accuracy = [&](const std::string& separation) {
    const Batch train = batch("train", separation), eval = batch("eval", separation);
    const at::Tensor x = train.tensor("img").flatten(1), y = train.tensor("label");
    const at::Tensor one_hot = y.unsqueeze(1).eq(at::arange(4)).to(at::kFloat);
    const at::Tensor means = one_hot.t().mm(x).div(one_hot.sum(0).unsqueeze(1));
    const at::Tensor scores = eval.tensor("img").flatten(1).mm(means.t()).mul(2).sub(means.pow(2).sum(1));
    return scores.argmax(1).eq(eval.tensor("label")).to(at::kFloat).mean().item<float>();
  };
  CHECK(accuracy("1") > 0.99);
  CHECK(accuracy("0") < 0.4);
}

TEST_CASE("the noise of Synthetic has mean zero and variance one") {
  auto dataset =
      PluginUnderTest("gantry-synthetic").build<Dataset>("Synthetic", map_config({{"SEPARATION", text_config("0")}}));
  std::vector<int64_t> all(200);
  std::iota(all.begin(), all.end(), 0);
  const at::Tensor img = dataset->get_batch(all).tensor("img");
  CHECK(std::abs(img.mean().item<float>()) < 0.01);
  CHECK(img.std().item<float>() == doctest::Approx(1).epsilon(0.01));
}

namespace {

std::unique_ptr<Metric> accuracy(const std::vector<std::string>& topk) {
  return PluginUnderTest("gantry-accuracy").build<Metric>("AccuracyMetric", map_config({{"TOPK", list_config(topk)}}));
}

void update(Metric& metric, const at::Tensor& logits, const at::Tensor& label) {
  Batch batch;
  batch.set("label", label);
  metric.update(batch, {{"logits", logits}});
}

double value(Metric& metric, const std::string& name) {
  gantry::Scalars scalars;
  metric.compute(scalars);
  const double* found = scalars.find(name);
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("accuracy counts hits among the best scores over batches of unequal size") {
  auto metric = accuracy({"1", "2"});
  CHECK(std::isnan(value(*metric, "acc@1")));
  update(*metric, at::tensor({.1, .7, .2, .5, .3, .2}).view({2, 3}), at::tensor({1, 1}, at::kLong));
  update(*metric, at::tensor({.1, .2, .7}).view({1, 3}), at::tensor({0}, at::kLong));
  CHECK(value(*metric, "acc@1") == 1 / 3.0);
  CHECK(value(*metric, "acc@2") == 2 / 3.0);
  metric->reset();
  CHECK(std::isnan(value(*metric, "acc@2")));
}

TEST_CASE("accuracy counts every position of a dense prediction") {
  auto metric = accuracy({"1", "2"});
  const at::Tensor logits = at::rand({2, 3, 4, 5}, at::kDouble);
  at::Tensor label = logits.argmax(1);
  label.select(0, 0).add_(1).remainder_(3);  // every position of the first sample is wrong
  update(*metric, logits, label);
  CHECK(value(*metric, "acc@1") == 0.5);
  CHECK(value(*metric, "acc@2") >= 0.5);
}

TEST_CASE("the sums of accuracy are aliases so that processes can add theirs") {
  auto metric = accuracy({"1"});
  update(*metric, at::tensor({1., 0., 1., 0.}).view({2, 2}), at::tensor({0, 1}, at::kLong));
  for (at::Tensor& sum : metric->sums()) sum.add_(2);  // another process: two samples, both right
  CHECK(value(*metric, "acc@1") == 0.75);
}

TEST_CASE("accuracy refuses more best classes than there are and names both numbers") {
  auto metric = accuracy({"5"});
  const std::string text = message_of<gantry::ConfigError>([&] {
    update(*metric, at::zeros({2, 3}), at::tensor({0, 1}, at::kLong));
  });
  CHECK(contains(text, "best 5"));
  CHECK(contains(text, "only 3"));
}

TEST_CASE("accuracy refuses scores and targets that do not fit together") {
  auto metric = accuracy({"1"});
  const std::string shapes = message_of<gantry::ConfigError>([&] {
    update(*metric, at::zeros({2, 3}), at::tensor({0, 1, 2}, at::kLong));
  });
  CHECK(contains(shapes, "[2, 3]"));
  CHECK(contains(shapes, "[3]"));
  CHECK(contains(message_of<gantry::ConfigError>([&] {
                   update(*metric, at::zeros({2, 3}), at::zeros({2}));
                 }),
                 "'label'"));
  PluginUnderTest plugin("gantry-accuracy");
  CHECK(contains(plugin.config_error<Metric>("AccuracyMetric", map_config({{"KEYS", list_config({"logits"})}})),
                 "KEYS names 1 tensor"));
}
