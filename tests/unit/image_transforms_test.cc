#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <utility>

#include "gantry/dataset.h"
#include "gantry/loader.h"
#include "gantry/sampler.h"
#include "gantry/transform.h"
#include "unit/messages.h"
#include "unit/nested_plugins.h"

using gantry::Batch;
using gantry::Transform;

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;
constexpr uint64_t kSeed = 77;
constexpr uint32_t kStream = 3;

std::unique_ptr<Transform> transform(const std::string& name, Keys config = {}) {
  static NestedPlugins plugins({"gantry-center-crop", "gantry-compose", "gantry-image-to-tensor", "gantry-normalize",
                                "gantry-random-crop", "gantry-random-horizontal-flip", "gantry-resize"});
  return plugins.build<Transform>(name, map_config(std::move(config)));
}

Batch batch_of(gantry::Value images, int64_t size, int64_t first_position = 0) {
  Batch batch;
  batch.set("img", std::move(images));
  batch.set("label", at::arange(size));
  batch.ids.assign(static_cast<std::size_t>(size), 0);
  batch.first_position = first_position;
  return batch;
}

at::Tensor transformed(const Transform& transform, const at::Tensor& images, int64_t first_position = 0,
                       uint64_t seed = kSeed) {
  Batch batch = batch_of(images, images.size(0), first_position);
  transform.apply_batch(batch, seed, kStream);
  return batch.tensor("img");
}

/// Images in which every pixel has another value.
at::Tensor numbered(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  int64_t all = 1;
  for (const int64_t extent : shape) all *= extent;
  return at::arange(1, all + 1).remainder(251).to(dtype).view(shape);
}

gantry::Config number(const char* text) { return text_config(text); }

std::vector<std::unique_ptr<Transform>> some_of_each() {
  std::vector<std::unique_ptr<Transform>> all;
  all.push_back(transform("Resize", {{"SIZE", list_config({"5", "4"})}}));
  all.push_back(transform("Resize", {{"SIZE", number("5")}, {"INTERPOLATION", number("bicubic")}}));
  all.push_back(transform("Resize", {{"SIZE", number("11")}, {"INTERPOLATION", number("nearest")}}));
  all.push_back(transform("CenterCrop", {{"SIZE", list_config({"5", "12"})}}));
  all.push_back(transform("RandomResizedCrop", {{"SIZE", list_config({"5", "4"})}}));
  all.push_back(transform("RandomCrop", {{"SIZE", number("6")}, {"PADDING", number("1")}}));
  all.push_back(transform("RandomHorizontalFlip"));
  all.push_back(transform("ImageToTensor"));
  all.push_back(
      transform("Normalize", {{"MEAN", list_config({"1", "2", "3"})}, {"STD", list_config({"4", "5", "6"})}}));
  return all;
}

}  // namespace

TEST_CASE("what an image transform does to a batch it does to each sample") {
  for (const auto& one : some_of_each()) {
    for (const auto dtype : {at::kByte, at::kFloat, at::kHalf, at::kDouble}) {
      CAPTURE(dtype);
      const at::Tensor images = numbered({20, 3, 9, 8}, dtype);
      const at::Tensor before = images.clone();
      const at::Tensor whole = transformed(*one, images, 1000);
      Batch batch = batch_of(images, 20, 1000);
      one->Transform::apply_batch(batch, kSeed, kStream);
      CHECK(batch.tensor("img").equal(whole));
      CHECK(batch.tensor("label").equal(at::arange(20)));
      CHECK(images.equal(before));
      // Neither memory in another order nor the neighbours in the batch make a difference.
      const at::Tensor turned = images.transpose(1, 3).contiguous().transpose(1, 3);
      CHECK(transformed(*one, turned, 1000).equal(whole));
      CHECK(transformed(*one, images.slice(0, 5, 9), 1005).equal(whole.slice(0, 5, 9)));
    }
  }
}

TEST_CASE("what an image transform does to a batch of several sizes it does to each sample") {
  for (const auto& one : some_of_each()) {
    std::vector<at::Tensor> images = {numbered({3, 9, 8}), numbered({3, 12, 7}), numbered({3, 9, 8}).add(1)};
    Batch batch = batch_of(images, 3, 50);
    one->apply_batch(batch, kSeed, kStream);
    const auto* list = std::get_if<std::vector<at::Tensor>>(batch.find("img"));
    for (int64_t i = 0; i < 3; ++i) {
      const at::Tensor alone = transformed(*one, images[static_cast<std::size_t>(i)].unsqueeze(0), 50 + i)[0];
      CHECK((list != nullptr ? (*list)[static_cast<std::size_t>(i)] : batch.tensor("img")[i]).equal(alone));
    }
  }
}

TEST_CASE("images that a transform gives one size become one tensor") {
  const std::vector<at::Tensor> images = {numbered({1, 9, 8}), numbered({1, 30, 7})};
  Batch batch = batch_of(images, 2);
  transform("Resize", {{"SIZE", number("6")}})->apply_batch(batch, kSeed, kStream);
  CHECK(std::get<std::vector<at::Tensor>>(*batch.find("img"))[1].sizes() == at::IntArrayRef({1, 25, 6}));
  transform("CenterCrop", {{"SIZE", number("6")}})->apply_batch(batch, kSeed, kStream);
  CHECK(batch.tensor("img").sizes() == at::IntArrayRef({2, 1, 6, 6}));
}

TEST_CASE("several images of a sample are cut at the same place and results get the names they are to have") {
  const at::Tensor images = numbered({30, 1, 9, 8});
  for (const char* name : {"RandomCrop", "RandomResizedCrop"}) {
    Batch batch = batch_of(images, 30);
    batch.set("mask", images.add(1000));
    transform(name, {{"SIZE", number("4")},
                     {"INTERPOLATION", number("nearest")},
                     {"INPUT_KEY", list_config({"img", "mask"})},
                     {"OUTPUT_KEY", list_config({"cut", "mask"})}})
        ->apply_batch(batch, kSeed, kStream);
    CHECK(batch.tensor("img").equal(images));
    CHECK(batch.tensor("cut").sizes() == at::IntArrayRef({30, 1, 4, 4}));
    CHECK(batch.tensor("mask").equal(batch.tensor("cut").add(1000)));
  }
  CHECK(contains(message_of<gantry::ConfigError>([&] {
                   transform("CenterCrop", {{"SIZE", number("4")}, {"OUTPUT_KEY", list_config({"a", "b"})}});
                 }),
                 "OUTPUT_KEY has 2 names, INPUT_KEY has 1"));
}

TEST_CASE("RandomResizedCrop depends on seed and position alone") {
  const auto crop = transform("RandomResizedCrop", {{"SIZE", number("6")}});
  const at::Tensor images = numbered({64, 1, 9, 9});
  const at::Tensor all = transformed(*crop, images, 5000);
  CHECK(transformed(*crop, images.slice(0, 20, 50), 5020).equal(all.slice(0, 20, 50)));
  CHECK_FALSE(transformed(*crop, images, 5064).equal(all));
  CHECK_FALSE(transformed(*crop, images, 5000, kSeed + 1).equal(all));
}

TEST_CASE("RandomResizedCrop takes the middle where no piece has an allowed ratio") {
  const at::Tensor wide = numbered({1, 1, 2, 64}), high = wide.transpose(2, 3).contiguous();
  const Keys keys = {{"SCALE", list_config({"1", "1"})}, {"RATIO", list_config({"0.75", "1.3"})}};
  Keys wide_keys = keys, high_keys = keys;
  wide_keys.emplace_back("SIZE", list_config({"2", "3"}));  // 2 x 2 * 1.3, the same size: only cut
  high_keys.emplace_back("SIZE", list_config({"3", "2"}));  // 2 / 0.75 x 2
  CHECK(transformed(*transform("RandomResizedCrop", wide_keys), wide).equal(wide.slice(3, 30, 33)));
  CHECK(transformed(*transform("RandomResizedCrop", high_keys), high).equal(high.slice(2, 30, 33)));
}

TEST_CASE("CenterCrop rounds half a pixel to the even one and adds zeros around what is smaller") {
  const at::Tensor image = numbered({1, 1, 7, 8});
  const auto crop = [&](const char* height, const char* width) {
    return transformed(*transform("CenterCrop", {{"SIZE", list_config({height, width})}}), image);
  };
  CHECK(crop("4", "5").equal(image.slice(2, 2, 6).slice(3, 2, 7)));  // (7-4)/2 and (8-5)/2 are 1.5: 2
  CHECK(crop("6", "7").equal(image.slice(2, 0, 6).slice(3, 0, 7)));  // 0.5: 0
  const at::Tensor padded = crop("10", "4");
  CHECK(padded.slice(2, 1, 8).equal(image.slice(3, 2, 6)));  // three rows missing: one above, two below
  CHECK(padded.slice(2, 0, 1).eq(0).all().item<bool>());
  CHECK(padded.slice(2, 8, 10).eq(0).all().item<bool>());
}

TEST_CASE("ImageToTensor gives single precision in 0 to 1 and Normalize after it gives what Normalize gives alone") {
  const at::Tensor bytes = at::arange(256, at::kByte).view({1, 1, 16, 16});
  const at::Tensor images = transformed(*transform("ImageToTensor"), bytes);
  CHECK(images.equal(bytes.to(at::kFloat).div(255)));
  const auto normalize = transform("Normalize", {{"MEAN", list_config({"0.3"})}, {"STD", list_config({"0.7"})}});
  CHECK(transformed(*normalize, images).equal(transformed(*normalize, bytes)));
  const at::Tensor numbers = at::rand({2, 1, 3, 3}, at::kDouble);
  CHECK(transformed(*transform("ImageToTensor"), numbers).equal(numbers.to(at::kFloat)));
}

TEST_CASE("pointwise transforms say which tensor they change in place and a Compose of them does too") {
  const auto key = [](const std::unique_ptr<Transform>& one) {
    const auto* pointwise = dynamic_cast<const gantry::PointwiseTransform*>(one.get());
    return pointwise == nullptr ? std::string("not pointwise") : pointwise->pointwise_key();
  };
  CHECK(key(transform("ImageToTensor")) == "img");
  CHECK(key(transform("ImageToTensor", {{"INPUT_KEY", number("x")}})) == "x");
  CHECK(key(transform("ImageToTensor", {{"OUTPUT_KEY", number("x")}})).empty());
  CHECK(key(transform("RandomHorizontalFlip")) == "not pointwise");
  const auto composed = [&](std::vector<gantry::Config> items) {
    return key(transform("Compose", {{"TRANSFORMS", components_config(std::move(items))}}));
  };
  const gantry::Config normalize =
      component_config("Normalize", {{"MEAN", list_config({"0.3"})}, {"STD", list_config({"0.7"})}});
  CHECK(composed({component_config("ImageToTensor"), normalize}) == "img");
  CHECK(composed({component_config("ImageToTensor"), component_config("RandomHorizontalFlip")}).empty());
  CHECK(composed({component_config("ImageToTensor", {{"INPUT_KEY", number("x")}}), normalize}).empty());
  CHECK(composed({}).empty());
}

namespace {

/// Every byte in three channels, looked up as soon as there is a table.
class ByteImages final : public gantry::Dataset, public gantry::LookupGather {
 public:
  explicit ByteImages(bool& looked_up) : looked_up_(looked_up) {}
  int64_t size() const override { return 4; }
  Batch get_batch(std::span<const int64_t> indices) const override {
    const at::Tensor bytes = at::arange(256, at::kByte)
                                 .view({1, 1, 16, 16})
                                 .repeat({4, 3, 1, 1})
                                 .slice(0, 0, static_cast<int64_t>(indices.size()));
    Batch batch;
    batch.set("img", table_.defined() ? looked_up(bytes) : bytes);
    return batch;
  }
  bool set_lookup(const std::string&, const at::Tensor& table) override {
    table_ = table;
    return looked_up_ = true;
  }
  int64_t lookup_channels(const std::string& key) const override { return key == "img" ? 3 : 0; }

 private:
  at::Tensor looked_up(const at::Tensor& bytes) const {
    std::vector<at::Tensor> channels;
    for (int64_t c = 0; c < 3; ++c)
      channels.push_back(table_[c].index_select(0, bytes.select(1, c).flatten().to(at::kLong)));
    return at::stack(channels, 1).view({bytes.size(0), 16, 16, 3}).permute({0, 3, 1, 2}).contiguous();
  }

  bool& looked_up_;
  at::Tensor table_;
};

class InOrder final : public gantry::Sampler {
 public:
  std::vector<int64_t> order(const gantry::SamplerPass&) const override { return {0, 1, 2, 3}; }
};

/// The first batch, and whether the dataset looked it up.
std::pair<Batch, bool> loaded(const std::string& name, const Keys& config) {
  bool looked_up = false;
  gantry::Loader::Parts parts;
  parts.dataset = std::make_unique<ByteImages>(looked_up);
  parts.sampler = std::make_unique<InOrder>();
  parts.transforms.push_back(transform(name, config));
  gantry::Loader::Options options;
  options.batch_size = 4;
  gantry::Loader loader(std::move(parts), options);
  loader.begin(1);
  Batch batch;
  REQUIRE(loader.next(batch));
  return {batch, looked_up};
}

}  // namespace

TEST_CASE("pointwise transforms are looked up where a dataset holds bytes and give the same bits") {
  const at::Tensor bytes = at::arange(256, at::kByte).view({1, 1, 16, 16}).repeat({4, 3, 1, 1});
  const Keys normalize = {{"MEAN", list_config({"0.1", "0.2", "0.3"})}, {"STD", list_config({"0.4", "0.5", "0.6"})}};
  const Keys both = {
      {"TRANSFORMS", components_config({component_config("ImageToTensor"), component_config("Normalize", normalize)})}};
  const std::vector<std::pair<std::string, Keys>> all = {
      {"ImageToTensor", {}}, {"Normalize", normalize}, {"Compose", both}};
  for (const auto& [name, config] : all) {
    CAPTURE(name);
    const auto [batch, looked_up] = loaded(name, config);
    CHECK(looked_up);
    CHECK(batch.tensor("img").equal(transformed(*transform(name, config), bytes)));
  }
  // What has another name stands beside the bytes, which are still there.
  const auto [batch, looked_up] = loaded("ImageToTensor", {{"OUTPUT_KEY", number("x")}});
  CHECK_FALSE(looked_up);
  CHECK(batch.tensor("img").equal(bytes));
  CHECK(batch.tensor("x").equal(bytes.to(at::kFloat).div(255)));
}

TEST_CASE("each transform of a Compose has random numbers of its own") {
  const gantry::Config flip = component_config("RandomHorizontalFlip");
  const at::Tensor images = numbered({1, 1, 1, 2}).expand({2000, 1, 1, 2});
  const auto flips = [&](const Transform& transform, uint32_t stream) {
    Batch batch = batch_of(images, 2000);
    transform.apply_batch(batch, kSeed, stream);
    return batch.tensor("img").ne(images).flatten(1).all(1);
  };
  const auto share = [](const at::Tensor& flips) { return static_cast<double>(flips.sum().item<int64_t>()) / 2000; };

  // One flip as the first of the outer list, of a Compose there, of one that stands second, and of one in a Compose.
  const auto alone = transform("RandomHorizontalFlip");
  const auto composed = transform("Compose", {{"TRANSFORMS", components_config({flip})}});
  const auto deep = transform(
      "Compose",
      {{"TRANSFORMS", components_config({component_config("Compose", {{"TRANSFORMS", components_config({flip})}})})}});
  const std::vector<at::Tensor> draws = {flips(*alone, 0), flips(*composed, 0), flips(*composed, 1), flips(*deep, 0)};
  for (std::size_t a = 0; a < draws.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b)
      CHECK(share(draws[a].logical_xor(draws[b])) == doctest::Approx(0.5).epsilon(0.1));
  }
  // Two in one list: were their numbers the same, they would undo each other.
  const auto twice = transform("Compose", {{"TRANSFORMS", components_config({flip, flip})}});
  CHECK(share(flips(*twice, 0)) == doctest::Approx(0.5).epsilon(0.1));
  CHECK(flips(*twice, 0).equal(flips(*twice, 0)));
}

TEST_CASE("a Compose does its transforms in order") {
  const auto both = transform(
      "Compose", {{"TRANSFORMS", components_config({component_config("Resize", {{"SIZE", list_config({"6", "9"})}}),
                                                    component_config("CenterCrop", {{"SIZE", number("4")}}),
                                                    component_config("Identity")})}});
  const at::Tensor images = numbered({2, 1, 5, 5});
  const at::Tensor resized = transformed(*transform("Resize", {{"SIZE", list_config({"6", "9"})}}), images);
  CHECK(transformed(*both, images).equal(resized.slice(2, 1, 5).slice(3, 2, 6)));
  gantry::Sample sample{{"img", images[1]}};
  gantry::CounterRng rng(0, 0, 0);
  both->apply(sample, rng);
  CHECK(sample.tensor("img").equal(transformed(*both, images)[1]));
}

TEST_CASE("image transforms refuse what is no picture and sizes that are none") {
  for (const char* name : {"Resize", "CenterCrop", "RandomResizedCrop", "RandomCrop"}) {
    CAPTURE(name);
    CHECK(contains(message_of<gantry::ConfigError>([&] {
                     transform(name, {{"SIZE", list_config({"1", "2", "3"})}});
                   }),
                   "not 3"));
    const auto one = transform(name, {{"SIZE", number("2")}});
    CHECK(contains(message_of<gantry::ConfigError>([&] {
                     transformed(*one, at::zeros({4, 4}));
                   }),
                   "'img' has shape [4, 4]"));
    CHECK(contains(message_of<gantry::ConfigError>([&] {
                     transformed(*one, at::zeros({4, 1, 0, 4}));
                   }),
                   "'img' has shape [4, 1, 0, 4]"));
    CHECK(transformed(*one, at::zeros({0, 1, 4, 4})).sizes() == at::IntArrayRef({0, 1, 2, 2}));
  }
}

TEST_CASE("labels and masks are resized by their nearest pixel or not at all") {
  const at::Tensor labels = numbered({1, 1, 4, 4}, at::kLong).mul(1000000007);
  const auto nearest = transform("Resize", {{"SIZE", number("2")}, {"INTERPOLATION", number("nearest")}});
  CHECK(transformed(*nearest, labels).equal(labels.slice(2, 1, 4, 2).slice(3, 1, 4, 2)));
  const at::Tensor mask = numbered({1, 1, 4, 4}).gt(7);
  CHECK(transformed(*nearest, mask).equal(mask.slice(2, 1, 4, 2).slice(3, 1, 4, 2)));
  const auto bilinear = transform("Resize", {{"SIZE", number("2")}});
  CHECK(contains(message_of<gantry::ConfigError>([&] { transformed(*bilinear, labels); }),
                 "INTERPOLATION is bilinear, but 'img' holds integers"));
  CHECK(contains(message_of<gantry::ConfigError>([&] { transformed(*bilinear, mask); }), "'img' holds booleans"));
  CHECK(contains(message_of<gantry::ConfigError>([&] { transformed(*transform("ImageToTensor"), labels); }), "'img'"));
}

TEST_CASE("RandomResizedCrop refuses ranges that are none") {
  const auto message = [](const char* key, std::vector<std::string> numbers) {
    return message_of<gantry::ConfigError>([&] {
      transform("RandomResizedCrop", {{"SIZE", number("4")}, {key, list_config(numbers)}});
    });
  };
  CHECK(contains(message("SCALE", {"0.5"}), "two numbers, not 1"));
  CHECK(contains(message("RATIO", {"2", "0.5"}), "2.0 is larger than 0.5"));
  CHECK(message("RATIO", {"0.5", "0.5"}) == "nothing was thrown");
}

TEST_CASE("a batch whose images are not one for each sample is refused") {
  Batch batch = batch_of(numbered({3, 1, 4, 4}), 3);
  batch.ids.push_back(0);
  const auto crop = transform("CenterCrop", {{"SIZE", number("2")}});
  CHECK(
      contains(message_of([&] { crop->apply_batch(batch, kSeed, 0); }), "float32 [3, 1, 4, 4] tensor in a batch of 4"));
}
