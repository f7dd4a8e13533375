#include "image_file.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry::image_folder {

void Pixels::allocate() {
  // Left as it is: pages that nothing is written to cost nothing, should the file be cut off.
  bytes.reset(new uint8_t[static_cast<std::size_t>(height * width * channels)]);
}

void check_size(int64_t height, int64_t width, int64_t max_pixels) {
  if (height <= max_pixels / width) return;
  throw Error(cat("it has ", height, " x ", width, " pixels; MAX_PIXELS allows ", max_pixels));
}

namespace {

std::string beginning(std::string_view file) {
  std::string text;
  char hex[4];
  for (const char byte : file.substr(0, 8)) {
    std::snprintf(hex, sizeof hex, "%02x ", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    text += hex;
  }
  if (!text.empty()) text.pop_back();
  return text;
}

uint8_t luminance(int red, int green, int blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

// Of inverted ink and inverted black: the product of both, in 255ths, rounded.
int ink_to_light(int ink, int black) {
  const int covered = (255 - ink) * black + 128;
  return std::max(0, black - ((covered + (covered >> 8)) >> 8));
}

// Calls put(i, red, green, blue) for each pixel.
template <class Put>
void for_each_colour(const Pixels& pixels, Put put) {
  const uint8_t* in = pixels.bytes.get();
  const int64_t count = pixels.height * pixels.width;
  if (pixels.channels == 3) {
    for (int64_t i = 0; i < count; ++i, in += 3) put(i, in[0], in[1], in[2]);
    return;
  }
  for (int64_t i = 0; i < count; ++i, in += 4) {
    put(i, ink_to_light(in[0], in[3]), ink_to_light(in[1], in[3]), ink_to_light(in[2], in[3]));
  }
}

}  // namespace

at::Tensor decode_image(std::string_view file, int64_t channels, int64_t max_pixels) {
  constexpr std::string_view kPng("\x89PNG\r\n\x1a\n", 8), kJpeg("\xff\xd8\xff", 3);
  if (file.empty()) throw Error("the file is empty");
  if (!file.starts_with(kPng) && !file.starts_with(kJpeg))
    throw Error(cat("it is neither a PNG nor a JPEG file: it begins with ", beginning(file)));
  const Pixels pixels = file.starts_with(kPng) ? read_png(file, max_pixels) : read_jpeg(file, max_pixels);

  at::Tensor image = at::empty({channels, pixels.height, pixels.width}, at::kByte);
  auto* out = image.mutable_data_ptr<uint8_t>();
  const int64_t count = pixels.height * pixels.width;
  if (pixels.channels == 1) {
    for (int64_t c = 0; c < channels; ++c)
      std::memcpy(out + c * count, pixels.bytes.get(), static_cast<std::size_t>(count));
  } else if (channels == 1) {
    for_each_colour(pixels, [&](int64_t i, int red, int green, int blue) { out[i] = luminance(red, green, blue); });
  } else {
    for_each_colour(pixels, [&](int64_t i, int red, int green, int blue) {
      out[i] = static_cast<uint8_t>(red);
      out[count + i] = static_cast<uint8_t>(green);
      out[2 * count + i] = static_cast<uint8_t>(blue);
    });
  }
  return image;
}

}  // namespace gantry::image_folder
