#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "gantry/error.h"
#include "gantry/text.h"
#include "image_file.h"

namespace gantry::image_folder {

namespace {

// The library reports an error by a jump out of it. The members that call it hold no object with a destructor, so that
// the jump passes none.
class PngReader final {
 public:
  explicit PngReader(std::string_view file) : file_(file) {}
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool read_header() {
    if (setjmp(jump_) != 0) return false;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &PngReader::on_error, &PngReader::on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return fail("not enough memory");
    png_set_read_fn(png_, this, &PngReader::on_read);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // MAX_PIXELS says what is too large
    png_read_info(png_, info_);
    return true;
  }

  // To one byte per channel, without transparency.
  bool convert() {
    if (setjmp(jump_) != 0) return false;
    png_set_palette_to_rgb(png_);
    png_set_expand_gray_1_2_4_to_8(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(jump_) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t channels() const { return png_get_channels(png_, info_); }
  int64_t row_bytes() const { return static_cast<int64_t>(png_get_rowbytes(png_, info_)); }
  const char* message() const { return message_; }

 private:
  bool fail(const char* text) {
    std::snprintf(message_, sizeof message_, "%s", text);
    return false;
  }

  static void on_error(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    self->fail(text);
    std::longjmp(self->jump_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}

  static void on_read(png_structp png, png_bytep to, std::size_t size) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (size > self->file_.size() - self->at_) png_error(png, "the file is cut off");
    std::memcpy(to, self->file_.data() + self->at_, size);
    self->at_ += size;
  }

  const std::string_view file_;
  std::size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_;
  char message_[256] = "";
};

}  // namespace

Pixels read_png(std::string_view file, int64_t max_pixels) {
  PngReader reader(file);
  const auto require = [&](bool done) {
    if (!done) throw Error(cat("it is a damaged PNG file: ", reader.message()));
  };
  require(reader.read_header());
  Pixels pixels;
  pixels.height = reader.height();
  pixels.width = reader.width();
  check_size(pixels.height, pixels.width, max_pixels);
  require(reader.convert());
  pixels.channels = reader.channels();
  if ((pixels.channels != 1 && pixels.channels != 3) || reader.row_bytes() != pixels.width * pixels.channels)
    throw Error(cat("it is a PNG file with ", pixels.channels, " channels, which cannot be read"));

  pixels.allocate();
  std::vector<png_bytep> rows;
  rows.reserve(static_cast<std::size_t>(pixels.height));
  for (int64_t y = 0; y < pixels.height; ++y) rows.push_back(pixels.bytes.get() + y * reader.row_bytes());
  require(reader.read_rows(rows.data()));
  return pixels;
}

}  // namespace gantry::image_folder
