#include "gantry/image.h"

#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/zeros.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"

namespace gantry {

namespace {

// The format's limit on a side, and libpng's own.
constexpr int64_t kLargestSide = 1'000'000;

struct PngWriter {
  std::string bytes, problem;
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

extern "C" {

void png_append(png_structp png, png_bytep data, std::size_t size) {
  bool fits = true;
  try {
    static_cast<PngWriter*>(png_get_io_ptr(png))->bytes.append(reinterpret_cast<const char*>(data), size);
  } catch (const std::exception&) {
    fits = false;  // no exception may pass through libpng, and no jump leave a catch block
  }
  if (!fits) png_error(png, "out of memory");
}
void png_no_flush(png_structp) {}
void png_note_error(png_structp png, png_const_charp message) {
  static_cast<PngWriter*>(png_get_error_ptr(png))->problem = message;
  png_longjmp(png, 1);
}
void png_ignore_warning(png_structp, png_const_charp) {}

}  // extern "C"

/// False: `writer.problem` says why. libpng leaves it by longjmp, so no object here may need a destructor.
bool write_png(PngWriter& writer, png_uint_32 width, png_uint_32 height, bool rgb, png_bytepp rows) {
  if (setjmp(png_jmpbuf(writer.png)) != 0) return false;
  png_set_write_fn(writer.png, &writer, png_append, png_no_flush);
  png_set_IHDR(writer.png, writer.info, width, height, 8, rgb ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writer.png, writer.info);
  png_write_image(writer.png, rows);
  png_write_end(writer.png, nullptr);
  return true;
}

}  // namespace

at::Tensor to_bytes(const at::Tensor& images) {
  if (!images.defined()) throw Error("pictures are made from tensors; this one is undefined");
  const at::Tensor here = images.detach().cpu();
  const at::ScalarType dtype = here.scalar_type();
  if (dtype == at::kByte) return here.contiguous();
  if (dtype == at::kBool) return here.to(at::kByte).mul(255).contiguous();
  if (!at::isFloatingType(dtype)) {
    throw Error(cat("pictures are made from bytes (uint8), booleans, or floating-point numbers from 0 to 1; this is ",
                    tensor_text(images)));
  }
  const at::Tensor numbers = dtype == at::kDouble ? here : here.to(at::kFloat);
  return at::nan_to_num(numbers, 0.0, 1.0, 0.0).clamp(0, 1).mul(255).round().to(at::kByte).contiguous();
}

at::Tensor make_grid(const at::Tensor& images, int64_t columns, int64_t padding) {
  if (!images.defined() || (images.dim() != 3 && images.dim() != 4) || images.numel() == 0)
    throw Error(cat("a grid is made of pictures, [C, H, W] or [N, C, H, W]; this is ", tensor_text(images)));
  if (padding < 0) throw Error(cat("a grid cannot have ", padding, " pixels between its pictures"));
  const at::Tensor all = images.dim() == 3 ? images.unsqueeze(0) : images;
  const int64_t count = all.size(0), height = all.size(2), width = all.size(3);
  if (columns <= 0) columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  columns = std::min(columns, count);
  const int64_t rows = (count + columns - 1) / columns;
  at::Tensor grid = at::zeros({all.size(1), rows * (height + padding) + padding, columns * (width + padding) + padding},
                              all.options());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t top = padding + i / columns * (height + padding), left = padding + i % columns * (width + padding);
    grid.narrow(1, top, height).narrow(2, left, width).copy_(all.select(0, i).detach());
  }
  return grid;
}

std::string encode_png(const at::Tensor& image) {
  const std::string got = tensor_text(image);
  if (!image.defined() || image.dim() != 3 || (image.size(0) != 1 && image.size(0) != 3) || image.numel() == 0)
    throw Error(cat("a PNG file is made of one picture, [1, H, W] or [3, H, W]; this is ", got));
  const int64_t height = image.size(1), width = image.size(2);
  if (height > kLargestSide || width > kLargestSide)
    throw Error(cat("a PNG file has at most ", kLargestSide, " pixels a side; this is ", got));
  const at::Tensor pixels = to_bytes(image).permute({1, 2, 0}).contiguous();  // [H, W, C]
  auto* data = static_cast<png_bytep>(pixels.data_ptr());
  std::vector<png_bytep> rows(static_cast<std::size_t>(height));
  for (int64_t y = 0; y < height; ++y) rows[static_cast<std::size_t>(y)] = data + y * width * image.size(0);

  PngWriter writer;
  writer.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, png_note_error, png_ignore_warning);
  if (writer.png != nullptr) writer.info = png_create_info_struct(writer.png);
  if (writer.info == nullptr) throw Error("a PNG file cannot be written: there is no memory for it");
  if (!write_png(writer, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), image.size(0) == 3,
                 rows.data()))
    throw Error(cat("a PNG file of a ", got, " picture cannot be written: ", writer.problem));
  return std::move(writer.bytes);
}

}  // namespace gantry
