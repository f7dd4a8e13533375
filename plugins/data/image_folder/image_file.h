#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>

/// Pictures in files. Any thread. Failures are gantry::Error without the file's name, which the caller knows.
namespace gantry::image_folder {

/// [height, width, channels]; 1 channel is gray, 3 are red, green and blue, 4 are Adobe's inverted cyan, magenta,
/// yellow and black.
struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  std::unique_ptr<uint8_t[]> bytes;

  void allocate();  ///< for the sizes above; not filled
};

/// What both readers do once a header tells how large the picture is, and before any memory is taken for it.
void check_size(int64_t height, int64_t width, int64_t max_pixels);

/// A PNG file: palettes and 1, 2, 4 and 16 bits become bytes (the high one of 16), transparency is dropped.
Pixels read_png(std::string_view file, int64_t max_pixels);
/// A JPEG file, with libjpeg's default settings. Data that the library would guess at are an error.
Pixels read_jpeg(std::string_view file, int64_t max_pixels);

/// The picture [channels, H, W], 1 or 3, from either kind of file, told by its content. Gray becomes colour by
/// repeating it, colour gray by ITU-R 601 weights, in the integers of Pillow.
at::Tensor decode_image(std::string_view file, int64_t channels, int64_t max_pixels);

}  // namespace gantry::image_folder
