#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <utility>

#include "gantry/transform.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

using gantry::Batch;
using gantry::Transform;

namespace {

constexpr uint64_t kSeed = 77;
constexpr uint32_t kStream = 3;

std::unique_ptr<Transform> random_crop(std::vector<std::pair<std::string, gantry::Config>> config) {
  return PluginUnderTest("gantry-random-crop").build<Transform>("RandomCrop", map_config(std::move(config)));
}

std::unique_ptr<Transform> random_flip(const std::string& probability = "0.5") {
  return PluginUnderTest("gantry-random-horizontal-flip")
      .build<Transform>("RandomHorizontalFlip", map_config({{"P", text_config(probability)}}));
}

Batch batch_of(const at::Tensor& images, int64_t first_position = 0) {
  Batch batch;
  batch.set("img", images);
  batch.set("label", at::arange(images.size(0)));
  batch.ids.assign(static_cast<std::size_t>(images.size(0)), 0);
  batch.first_position = first_position;
  return batch;
}

at::Tensor transformed(const Transform& transform, const at::Tensor& images, int64_t first_position = 0,
                       uint64_t seed = kSeed) {
  Batch batch = batch_of(images, first_position);
  transform.apply_batch(batch, seed, kStream);
  return batch.tensor("img");
}

/// Each sample by itself, as the default of Transform::apply_batch does it.
at::Tensor one_by_one(const Transform& transform, const at::Tensor& images, int64_t first_position) {
  Batch batch = batch_of(images, first_position);
  transform.Transform::apply_batch(batch, kSeed, kStream);
  return batch.tensor("img");
}

/// Images in which every pixel has another value.
at::Tensor numbered(at::IntArrayRef shape, at::ScalarType dtype) {
  int64_t all = 1;
  for (const int64_t extent : shape) all *= extent;
  return at::arange(1, all + 1).remainder(251).to(dtype).view(shape);
}

void check_same_as_one_by_one(const Transform& transform, int64_t height, int64_t width) {
  for (const auto dtype : {at::kByte, at::kHalf, at::kFloat, at::kLong}) {
    CAPTURE(dtype);
    const at::Tensor images = numbered({40, 3, height, width}, dtype);
    const at::Tensor before = images.clone();
    const at::Tensor result = transformed(transform, images, 1000);
    CHECK(result.equal(one_by_one(transform, images, 1000)));
    CHECK((result.scalar_type() == dtype));
    CHECK(images.equal(before));
    // Neither planes nor memory in the usual order make a difference.
    CHECK(transformed(transform, images.select(1, 2), 1000).equal(result.select(1, 2)));
    const at::Tensor turned = images.transpose(1, 2).contiguous().transpose(1, 2);
    CHECK(transformed(transform, turned, 1000).equal(result));
  }
}

void check_depends_on_position_alone(const Transform& transform) {
  const at::Tensor images = numbered({64, 1, 9, 9}, at::kFloat);
  const at::Tensor all = transformed(transform, images, 5000);
  CHECK(transformed(transform, images, 5000).equal(all));
  CHECK(transformed(transform, images.slice(0, 20, 50), 5020).equal(all.slice(0, 20, 50)));
  CHECK_FALSE(transformed(transform, images, 5064).equal(all));
  CHECK_FALSE(transformed(transform, images, 5000, kSeed + 1).equal(all));
}

}  // namespace

TEST_CASE("RandomCrop of a batch is RandomCrop of each sample") {
  check_same_as_one_by_one(*random_crop({{"SIZE", list_config({"5", "7"})}}), 8, 9);
  check_same_as_one_by_one(*random_crop({{"SIZE", text_config("8")}, {"PADDING", text_config("3")}}), 8, 8);
  check_same_as_one_by_one(
      *random_crop({{"SIZE", list_config({"2", "1"})}, {"PADDING", text_config("4")}, {"FILL", text_config("7")}}), 3,
      2);
}

TEST_CASE("RandomCrop is a slice of the padded image and all slices come about equally often") {
  auto crop =
      random_crop({{"SIZE", list_config({"4", "5"})}, {"PADDING", text_config("1")}, {"FILL", text_config("9")}});
  const at::Tensor image = numbered({1, 2, 4, 6}, at::kFloat);
  const at::Tensor padded = at::constant_pad_nd(image, {1, 1, 1, 1}, 9)[0];
  constexpr int64_t kSamples = 6000, kRows = 3, kColumns = 4;
  const at::Tensor result = transformed(*crop, image.expand({kSamples, 2, 4, 6}));
  REQUIRE(result.sizes() == at::IntArrayRef({kSamples, 2, 4, 5}));
  std::map<std::pair<int64_t, int64_t>, int64_t> seen;
  at::Tensor unmatched = at::arange(kSamples).ge(0);
  for (int64_t top = 0; top < kRows; ++top) {
    for (int64_t left = 0; left < kColumns; ++left) {
      const at::Tensor slice = padded.slice(1, top, top + 4).slice(2, left, left + 5);
      const at::Tensor equal = result.eq(slice).flatten(1).all(1);
      seen[{top, left}] = equal.sum().item<int64_t>();
      unmatched = unmatched.logical_and(equal.logical_not());
    }
  }
  CHECK_FALSE(unmatched.any().item<bool>());
  for (const auto& [place, count] : seen) {
    CAPTURE(place.first);
    CAPTURE(place.second);
    CHECK(count > 400);  // 500 expected, standard deviation 21
    CHECK(count < 600);
  }
}

TEST_CASE("RandomCrop depends on seed and position alone") {
  check_depends_on_position_alone(*random_crop({{"SIZE", text_config("9")}, {"PADDING", text_config("2")}}));
}

TEST_CASE("RandomCrop leaves everything but the image alone and takes an empty batch") {
  auto crop = random_crop({{"SIZE", text_config("2")}});
  Batch batch = batch_of(numbered({3, 1, 4, 4}, at::kByte));
  crop->apply_batch(batch, kSeed, kStream);
  CHECK(batch.tensor("label").equal(at::arange(3)));
  CHECK(transformed(*crop, at::zeros({0, 1, 4, 4})).sizes() == at::IntArrayRef({0, 1, 2, 2}));
}

TEST_CASE("RandomCrop says which numbers do not fit together") {
  PluginUnderTest plugin("gantry-random-crop");
  CHECK(contains(plugin.config_error<Transform>("RandomCrop", map_config({{"SIZE", list_config({"1", "2", "3"})}})),
                 "SIZE is a height and a width, or one number for both, not 3"));
  const auto message = [&](std::vector<std::pair<std::string, gantry::Config>> config, const at::Tensor& images) {
    auto crop = random_crop(std::move(config));
    return message_of<gantry::ConfigError>([&] { transformed(*crop, images); });
  };
  const std::string large =
      message({{"SIZE", list_config({"7", "4"})}, {"PADDING", text_config("1")}}, at::zeros({1, 1, 4, 4}));
  CHECK(contains(large, "SIZE is 7 x 4, but 'img' has images of 4 x 4 and PADDING is 1"));
  const auto filled = [&](const std::string& fill, at::ScalarType dtype) {
    return message({{"SIZE", text_config("4")}, {"PADDING", text_config("1")}, {"FILL", text_config(fill)}},
                   at::zeros({1, 1, 4, 4}, dtype));
  };
  CHECK(contains(filled("0.5", at::kByte), "FILL is 0.5"));
  CHECK(contains(filled("300", at::kByte), "FILL is 300"));
  CHECK(filled("255", at::kByte) == "nothing was thrown");
  CHECK(filled("-0.81", at::kFloat) == "nothing was thrown");
  CHECK(contains(message({{"SIZE", text_config("1")}}, at::zeros({4, 4})), "'img' has shape [4, 4]"));
}

TEST_CASE("RandomHorizontalFlip of a batch is RandomHorizontalFlip of each sample") {
  auto flip = random_flip();
  check_same_as_one_by_one(*flip, 5, 7);
  check_same_as_one_by_one(*flip, 3, 1);
  check_same_as_one_by_one(*flip, 2, 64);
}

TEST_CASE("RandomHorizontalFlip mirrors as many images as P says") {
  const at::Tensor image = numbered({1, 2, 3, 5}, at::kFloat);
  const at::Tensor images = image.expand({4000, 2, 3, 5});
  const at::Tensor mirrored = at::flip(image, {3});
  const std::vector<std::pair<std::string, double>> cases = {{"0", 0}, {"0.2", 0.2}, {"0.5", 0.5}, {"1", 1}};
  for (const auto& [text, probability] : cases) {
    CAPTURE(probability);
    const at::Tensor result = transformed(*random_flip(text), images);
    const at::Tensor flipped = result.eq(mirrored).flatten(1).all(1);
    const at::Tensor kept = result.eq(image).flatten(1).all(1);
    CHECK(flipped.logical_xor(kept).all().item<bool>());
    const double share = static_cast<double>(flipped.sum().item<int64_t>()) / 4000;
    CHECK(share == doctest::Approx(probability).epsilon(0.001).scale(30));  // four standard deviations
  }
}

TEST_CASE("RandomHorizontalFlip depends on seed and position alone") {
  check_depends_on_position_alone(*random_flip());
}

TEST_CASE("RandomHorizontalFlip refuses what has no width and takes an empty batch") {
  auto flip = random_flip();
  CHECK(contains(message_of<gantry::ConfigError>([&] { transformed(*flip, at::zeros({4})); }), "'img' has shape [4]"));
  CHECK(contains(message_of<gantry::ConfigError>([&] {
                   transformed(*flip, at::zeros({1, 1, 2, 2}, at::kComplexDouble));
                 }),
                 "elements of 16 bytes"));
  CHECK(transformed(*flip, at::zeros({0, 1, 4, 4})).sizes() == at::IntArrayRef({0, 1, 4, 4}));
}

TEST_CASE("transforms in a list draw independent numbers") {
  auto flip = random_flip();
  const at::Tensor images = numbered({1, 1, 1, 2}, at::kFloat).expand({1000, 1, 1, 2});
  Batch first = batch_of(images), second = batch_of(images);
  flip->apply_batch(first, kSeed, 0);
  flip->apply_batch(second, kSeed, 1);
  const double equal =
      static_cast<double>(first.tensor("img").eq(second.tensor("img")).flatten(1).all(1).sum().item<int64_t>());
  CHECK(equal > 400);
  CHECK(equal < 600);
}
