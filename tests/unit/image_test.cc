#include "gantry/image.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <png.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "gantry/error.h"

namespace {

/// A PNG file as libpng's own simple reader sees it: no code of the writer is used.
struct Read {
  bool valid = false;
  int width = 0, height = 0, channels = 0;
  std::vector<unsigned char> pixels;  // row by row, channels together
};

Read read_png(const std::string& file) {
  Read read;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) return read;
  read.channels = (image.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
  image.format = read.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  read.width = static_cast<int>(image.width);
  read.height = static_cast<int>(image.height);
  read.pixels.resize(PNG_IMAGE_SIZE(image));
  read.valid = png_image_finish_read(&image, nullptr, read.pixels.data(), 0, nullptr) != 0;
  return read;
}

std::vector<unsigned char> bytes_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  const auto* data = whole.const_data_ptr<uint8_t>();
  return {data, data + whole.numel()};
}

at::Tensor floats(std::vector<float> values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat).clone();
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const gantry::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a gray picture comes back from its PNG file pixel for pixel") {
  const at::Tensor image = at::arange(5 * 7, at::kLong).mul(7).remainder(256).to(at::kByte).view({1, 5, 7});
  const Read read = read_png(gantry::encode_png(image));
  REQUIRE(read.valid);
  CHECK(read.width == 7);
  CHECK(read.height == 5);
  CHECK(read.channels == 1);
  CHECK(read.pixels == bytes_of(image));
}

TEST_CASE("a colour picture comes back from its PNG file pixel for pixel with red first") {
  at::Tensor image = at::zeros({3, 2, 2}, at::kByte);
  image.select(0, 0).fill_(200);
  image.select(0, 1).select(0, 1).fill_(90);  // green: the lower row
  image.select(0, 2).select(1, 1).fill_(30);  // blue: the right column
  const Read read = read_png(gantry::encode_png(image));
  REQUIRE(read.valid);
  CHECK(read.channels == 3);
  CHECK(read.pixels == std::vector<unsigned char>{200, 0, 0, 200, 0, 30, 200, 90, 0, 200, 90, 30});
}

TEST_CASE("a picture that is a view of another and one of a single pixel are written as they look") {
  const at::Tensor whole = at::arange(6 * 8, at::kLong).to(at::kByte).view({1, 6, 8});
  const at::Tensor view = whole.narrow(1, 1, 3).narrow(2, 2, 4).transpose(1, 2);
  const Read read = read_png(gantry::encode_png(view));
  REQUIRE(read.valid);
  CHECK(read.width == 3);
  CHECK(read.height == 4);
  CHECK(read.pixels == bytes_of(view));
  const Read dot = read_png(gantry::encode_png(at::full({1, 1, 1}, 77, at::kByte)));
  REQUIRE(dot.valid);
  CHECK(dot.pixels == std::vector<unsigned char>{77});
}

TEST_CASE("numbers from 0 to 1 become bytes and what lies outside becomes the nearer end") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const at::Tensor bytes =
      gantry::to_bytes(floats({0.0f, 1.0f, 0.5f, 1.0f / 255, 0.1f, -3.0f, 7.0f, nan, inf, -inf, 0.998f}));
  CHECK(bytes_of(bytes) == std::vector<unsigned char>{0, 255, 128, 1, 26, 0, 255, 0, 255, 0, 254});
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kDouble}) {
    CHECK(bytes_of(gantry::to_bytes(floats({0, 1, -1, 2, nan}).to(dtype))) ==
          std::vector<unsigned char>{0, 255, 0, 255, 0});
  }
}

TEST_CASE("bytes stay as they are and booleans are black and white") {
  const at::Tensor bytes = at::arange(256, at::kLong).to(at::kByte);
  CHECK(bytes_of(gantry::to_bytes(bytes)) == bytes_of(bytes));
  CHECK(bytes_of(gantry::to_bytes(floats({0, 1, 1}).to(at::kBool))) == std::vector<unsigned char>{0, 255, 255});
}

TEST_CASE("a grid has its pictures in rows with black between them") {
  at::Tensor images = at::zeros({3, 1, 2, 2}, at::kByte);
  for (int64_t i = 0; i < 3; ++i) images.select(0, i).fill_(10 * (i + 1));
  const at::Tensor grid = gantry::make_grid(images, 2, 1);
  REQUIRE(grid.sizes() == at::IntArrayRef({1, 7, 7}));
  CHECK(bytes_of(grid) == std::vector<unsigned char>{0, 0,  0,  0, 0,  0,  0,  //
                                                     0, 10, 10, 0, 20, 20, 0,  //
                                                     0, 10, 10, 0, 20, 20, 0,  //
                                                     0, 0,  0,  0, 0,  0,  0,  //
                                                     0, 30, 30, 0, 0,  0,  0,  //
                                                     0, 30, 30, 0, 0,  0,  0,  //
                                                     0, 0,  0,  0, 0,  0,  0});
}

TEST_CASE("a grid without a number of columns is as square as it gets and keeps the dtype") {
  CHECK(gantry::make_grid(at::zeros({10, 3, 4, 5}, at::kFloat)).sizes() == at::IntArrayRef({3, 3 * 6 + 2, 4 * 7 + 2}));
  CHECK(gantry::make_grid(at::zeros({4, 1, 3, 3}, at::kDouble), 0, 0).sizes() == at::IntArrayRef({1, 6, 6}));
  CHECK((gantry::make_grid(at::zeros({4, 1, 3, 3}, at::kDouble)).scalar_type() == at::kDouble));
  // More columns than pictures are no empty places, and one picture is a grid of one.
  CHECK(gantry::make_grid(at::zeros({2, 1, 3, 3}), 9).sizes() == at::IntArrayRef({1, 7, 12}));
  CHECK(gantry::make_grid(at::zeros({1, 3, 3})).sizes() == at::IntArrayRef({1, 7, 7}));
}

TEST_CASE("what is no picture is refused with its dtype and shape") {
  CHECK(error_of([] {
          gantry::encode_png(at::zeros({2, 5, 5}, at::kByte));
        }) == "a PNG file is made of one picture, [1, H, W] or [3, H, W]; this is uint8 [2, 5, 5]");
  CHECK(error_of([] {
          gantry::encode_png(at::zeros({5, 5}, at::kFloat));
        }).find("float32 [5, 5]") != std::string::npos);
  CHECK(error_of([] {
          gantry::encode_png(at::zeros({1, 0, 5}, at::kByte));
        }).find("uint8 [1, 0, 5]") != std::string::npos);
  CHECK(error_of([] { gantry::encode_png(at::Tensor()); }).find("undefined") != std::string::npos);
  CHECK(error_of([] {
          gantry::to_bytes(at::zeros({1, 2, 2}, at::kLong));
        }).find("this is int64 [1, 2, 2]") != std::string::npos);
  CHECK(error_of([] { gantry::make_grid(at::zeros({0, 1, 2, 2})); }).find("float32 [0, 1, 2, 2]") != std::string::npos);
  CHECK(error_of([] { gantry::make_grid(at::zeros({2, 2})); }).find("float32 [2, 2]") != std::string::npos);
  CHECK(error_of([] { gantry::make_grid(at::zeros({1, 2, 2}), 0, -1); }).find("-1 pixels") != std::string::npos);
  CHECK(error_of([] {
          gantry::encode_png(at::zeros({1, 1, 1}, at::kByte).expand({1, 1, 1000001}));
        }).find("1000000 pixels a side") != std::string::npos);
}
