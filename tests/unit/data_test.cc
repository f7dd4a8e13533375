#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gantry/batch.h"
#include "gantry/error.h"
#include "gantry/metric.h"
#include "gantry/random.h"
#include "gantry/transform.h"
#include "unit/messages.h"

using gantry::Batch;
using gantry::CounterRng;
using gantry::Fields;
using gantry::MeanMeter;
using gantry::Sample;

namespace {

std::vector<std::string> names(const Fields& fields) {
  std::vector<std::string> result;
  for (const auto& [name, value] : fields.entries()) result.push_back(name);
  return result;
}

}  // namespace

TEST_CASE("fields keep their order when a value is replaced and lose only what is erased") {
  Fields fields{{"b", at::zeros({1})}, {"a", 2.0}};
  fields.set("c", int64_t{3});
  fields.set("b", std::vector<std::string>{"x"});
  CHECK(names(fields) == std::vector<std::string>{"b", "a", "c"});
  CHECK(std::get<std::vector<std::string>>(*fields.find("b"))[0] == "x");
  fields.erase("a");
  fields.erase("nothing of that name");
  CHECK(names(fields) == std::vector<std::string>{"b", "c"});
  CHECK_FALSE(fields.has("a"));
}

TEST_CASE("asking fields for a tensor that is not there lists the names there are") {
  Fields fields{{"img", at::zeros({1})}, {"epoch", int64_t{3}}, {"later", at::Tensor()}};
  const std::string absent = message_of([&] { fields.tensor("imgs"); });
  CHECK(contains(absent, "'imgs'"));
  CHECK(contains(absent, "img, epoch, later"));
  CHECK(contains(message_of([&] { fields.tensor("epoch"); }), "an integer"));
  CHECK(contains(message_of([&] { fields.tensor("later"); }), "undefined"));
}

TEST_CASE("a tensor of the outputs hides one of the batch and an unknown key lists both") {
  Batch batch;
  batch.set("label", at::zeros({1}));
  batch.set("logits", at::zeros({1}));
  gantry::Outputs outputs{{"logits", at::zeros({2})}};
  CHECK(gantry::find_tensor(batch, outputs, "logits").numel() == 2);
  CHECK(gantry::find_tensor(batch, outputs, "label").numel() == 1);
  const std::string text = message_of([&] { gantry::find_tensor(batch, outputs, "lable"); });
  CHECK(contains(text, "'lable'"));
  CHECK(contains(text, "label, logits"));
}

TEST_CASE("scalars replace a value at its old position") {
  gantry::Scalars scalars;
  scalars.set("loss", 1);
  scalars.set("acc", 2);
  scalars.set("loss", 3);
  CHECK(scalars.entries() == std::vector<std::pair<std::string, double>>{{"loss", 3}, {"acc", 2}});
  CHECK(scalars.find("lr") == nullptr);
}

TEST_CASE("a mean meter weighs values of every dtype") {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort}) {
    MeanMeter meter;
    meter.add(at::scalar_tensor(2, dtype), 3);
    meter.add(at::scalar_tensor(6, dtype), 1);
    meter.add(10.0, 4);
    CHECK(meter.weight() == 8);
    CHECK(meter.mean() == (2 * 3 + 6 + 40) / 8.0);
  }
}

TEST_CASE("a mean meter has no mean before anything is added and after a reset") {
  MeanMeter meter;
  CHECK(std::isnan(meter.mean()));
  meter.add(1.0, 1);
  CHECK(meter.mean() == 1);
  meter.reset();
  CHECK(std::isnan(meter.mean()));
  CHECK(meter.weight() == 0);
}

TEST_CASE("a value of weight zero does not touch a mean even when it is no number") {
  MeanMeter meter;
  meter.add(4.0, 2);
  meter.add(at::scalar_tensor(std::nan("")), 0);
  meter.add(std::nan(""), 0);
  CHECK(meter.mean() == 4);
  meter.add(std::nan(""), 1);
  CHECK(std::isnan(meter.mean()));
}

TEST_CASE("a mean meter refuses a tensor that is no single number") {
  MeanMeter meter;
  CHECK(contains(message_of([&] { meter.add(at::zeros({1}), 1); }), "[1]"));
  CHECK(contains(message_of([&] { meter.add(at::Tensor(), 1); }), "undefined"));
}

TEST_CASE("a mean meter does not keep the graph of a value") {
  const at::Tensor weight = at::full({}, 2.0).requires_grad_(true);
  MeanMeter meter;
  meter.add(weight.mul(3), 1);
  CHECK(meter.mean() == 6);
}

TEST_CASE("collate stacks tensors and numbers and lists the rest") {
  std::vector<Sample> samples;
  for (int64_t i = 0; i < 3; ++i) {
    samples.push_back(Sample{{"img", at::full({2, 2}, static_cast<double>(i))},
                             {"label", i},
                             {"score", 0.5 * static_cast<double>(i)},
                             {"file", std::vector<std::string>{std::to_string(i)}},
                             {"boxes", std::vector<at::Tensor>{at::zeros({i, 4})}}});
  }
  const Batch batch = gantry::collate(samples);
  CHECK(names(batch) == std::vector<std::string>{"img", "label", "score", "file", "boxes"});
  CHECK(batch.tensor("img").sizes() == at::IntArrayRef({3, 2, 2}));
  CHECK(batch.tensor("img").select(0, 2).equal(at::full({2, 2}, 2.0)));
  CHECK(batch.tensor("label").equal(at::arange(3)));
  CHECK((batch.tensor("score").scalar_type() == at::kDouble));
  CHECK(batch.tensor("score").select(0, 2).item<double>() == 1.0);
  CHECK(std::get<std::vector<std::string>>(*batch.find("file")) == std::vector<std::string>{"0", "1", "2"});
  CHECK(std::get<std::vector<at::Tensor>>(*batch.find("boxes"))[2].size(0) == 2);
  CHECK(gantry::collate({}).entries().empty());
}

TEST_CASE("collate names the sample and the key and both sides of what differs") {
  const auto collate = [](const Sample& a, const Sample& b) { return message_of([&] { gantry::collate({a, a, b}); }); };
  const std::string dtype = collate({{"img", at::zeros({3})}}, {{"img", at::zeros({3}, at::kByte)}});
  CHECK(contains(dtype, "'img' is uint8 [3] in sample 2, float32 [3] in sample 0"));
  const std::string type = collate({{"x", int64_t{1}}}, {{"x", 1.0}});
  CHECK(contains(type, "'x' is a number in sample 2, an integer in sample 0"));
  const std::string other = collate({{"x", 1.0}}, {{"y", 1.0}});
  CHECK(contains(other, "sample 2 has y, sample 0 has x"));
  const std::string more = collate({{"x", 1.0}}, {{"x", 1.0}, {"y", 1.0}});
  CHECK(contains(more, "sample 2 has x, y"));
  const std::string list = collate({{"s", std::vector<std::string>{"a"}}}, {{"s", std::vector<std::string>{"a", "b"}}});
  CHECK(contains(list, "'s' is a list of 2 strings in sample 2"));
}

TEST_CASE("the counter generator gives the published numbers of Philox4x32 with 10 rounds") {
  CounterRng rng(0, 0, 0);
  for (const uint32_t expected : {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}) {
    CHECK(rng.next_u32() == expected);
  }
}

TEST_CASE("the counter generator agrees with LibTorch's Philox in every field of key and counter") {
  const uint64_t seed = 0x0123456789abcdef, position = 0xfedcba9876543210;
  const uint32_t stream = 0x13579bdf;
  CounterRng rng(seed, position, stream);
  for (uint64_t block = 0; block < 3; ++block) {
    at::Philox4_32 reference(seed, block << 32 | stream, position);
    for (int i = 0; i < 4; ++i) CHECK(rng.next_u32() == reference());
  }
}

TEST_CASE("random integers below a bound stay below it and reach every value about equally") {
  CounterRng rng(1, 2, 3);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) {
    const uint64_t value = rng.below(7);
    REQUIRE(value < 7);
    ++seen[value];
  }
  CHECK(*std::min_element(seen.begin(), seen.end()) > 850);
  CHECK(*std::max_element(seen.begin(), seen.end()) < 1150);
  CHECK(rng.below(1) == 0);
  // Without refusing some draws, half of all numbers below this bound would be multiples of 3.
  const uint64_t bound = uint64_t{3} << 62;
  int multiples = 0;
  for (int i = 0; i < 3000; ++i) {
    const uint64_t value = rng.below(bound);
    REQUIRE(value < bound);
    multiples += value % 3 == 0;
  }
  CHECK(multiples > 900);
  CHECK(multiples < 1100);
  CHECK_THROWS_AS(rng.below(0), std::logic_error);
}

TEST_CASE("uniform random numbers lie in the half open unit interval around one half") {
  CounterRng rng(5, 0, 0);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = rng.uniform();
    REQUIRE(value >= 0);
    REQUIRE(value < 1);
    sum += value;
  }
  CHECK(sum / 10000 == doctest::Approx(0.5).epsilon(0.02));
}

namespace {

class AddDraw final : public gantry::Transform {
 public:
  void apply(Sample& sample, CounterRng& rng) const override {
    sample.set("x", sample.tensor("x").add(static_cast<double>(rng.below(1000))));
    sample.set("draw", rng.uniform());
  }
};

}  // namespace

TEST_CASE("the default of apply_batch gives each sample the generator of its position") {
  Batch batch;
  batch.set("x", at::zeros({3, 2}));
  batch.set("file", std::vector<std::string>{"a", "b", "c"});
  batch.set("scale", 2.0);
  batch.ids = {40, 10, 20};
  batch.first_position = 100;
  batch.weight = 3;
  AddDraw().apply_batch(batch, 9, 4);
  for (int64_t i = 0; i < 3; ++i) {
    CounterRng rng(9, static_cast<uint64_t>(100 + i), 4);
    const auto expected = static_cast<float>(rng.below(1000));
    CHECK(batch.tensor("x").select(0, i).equal(at::full({2}, expected)));
    CHECK(batch.tensor("draw").select(0, i).item<double>() == rng.uniform());
  }
  CHECK(batch.ids == std::vector<int64_t>{40, 10, 20});
  CHECK(batch.weight == 3);
  CHECK(std::get<std::vector<std::string>>(*batch.find("file")) == std::vector<std::string>{"a", "b", "c"});
  CHECK(std::get<double>(*batch.find("scale")) == 2.0);
}

TEST_CASE("the default of apply_batch refuses a tensor that has not one row per sample") {
  Batch batch;
  batch.set("x", at::zeros({2, 2}));
  batch.ids = {0, 1, 2};
  const std::string text = message_of([&] { AddDraw().apply_batch(batch, 0, 0); });
  CHECK(contains(text, "'x'"));
  CHECK(contains(text, "float32 [2, 2]"));
}
