// jpeglib.h wants FILE and size_t.
#include <cstddef>
#include <cstdio>
//
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <vector>

#include "gantry/error.h"
#include "gantry/text.h"
#include "image_file.h"

namespace gantry::image_folder {

namespace {

// The library reports an error by a jump out of it. The members that call it hold no object with a destructor, so that
// the jump passes none.
class JpegReader final {
 public:
  JpegReader() = default;
  ~JpegReader() {
    if (created_) jpeg_destroy_decompress(&jpeg_);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool read_header(const unsigned char* bytes, std::size_t size) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = &JpegReader::on_error;
    errors_.emit_message = &JpegReader::on_message;
    jpeg_.client_data = this;
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&jpeg_);  // keeps err and client_data
    created_ = true;
    progress_.progress_monitor = &JpegReader::on_progress;
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, bytes, size);
    jpeg_read_header(&jpeg_, TRUE);
    const bool four = jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK;
    jpeg_.out_color_space = jpeg_.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : four ? JCS_CMYK : JCS_RGB;
    return true;
  }

  bool start() {
    if (setjmp(jump_) != 0) return false;
    jpeg_start_decompress(&jpeg_);
    return true;
  }

  bool read_rows(JSAMPARRAY rows) {
    if (setjmp(jump_) != 0) return false;
    while (jpeg_.output_scanline < jpeg_.output_height)
      jpeg_read_scanlines(&jpeg_, rows + jpeg_.output_scanline, jpeg_.output_height - jpeg_.output_scanline);
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  int64_t height() const { return jpeg_.image_height; }
  int64_t width() const { return jpeg_.image_width; }
  int64_t channels() const { return jpeg_.output_components; }
  const char* message() const { return message_; }

 private:
  static JpegReader* self(j_common_ptr jpeg) { return static_cast<JpegReader*>(jpeg->client_data); }

  [[noreturn]] static void on_error(j_common_ptr jpeg) {
    JpegReader* reader = self(jpeg);
    jpeg->err->format_message(jpeg, reader->message_);
    std::longjmp(reader->jump_, 1);
  }

  // What the library would go on from with invented pixels. Other warnings leave the picture as it is.
  static void on_message(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    switch (jpeg->err->msg_code) {
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_JPEG_EOF:
      case JWRN_MUST_RESYNC:
        on_error(jpeg);
    }
  }

  // A small file may have thousands of scans, each of which costs time for the whole picture.
  static void on_progress(j_common_ptr jpeg) {
    constexpr int kMostScans = 500;
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
    JpegReader* reader = self(jpeg);
    std::snprintf(reader->message_, sizeof reader->message_, "it has more than %d scans", kMostScans);
    std::longjmp(reader->jump_, 1);
  }

  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  bool created_ = false;
  std::jmp_buf jump_;
  char message_[JMSG_LENGTH_MAX] = "";
};

}  // namespace

Pixels read_jpeg(std::string_view file, int64_t max_pixels) {
  JpegReader reader;
  const auto require = [&](bool done) {
    if (!done) throw Error(cat("it is a damaged JPEG file: ", reader.message()));
  };
  require(reader.read_header(reinterpret_cast<const unsigned char*>(file.data()), file.size()));
  Pixels pixels;
  pixels.height = reader.height();
  pixels.width = reader.width();
  check_size(pixels.height, pixels.width, max_pixels);
  require(reader.start());
  pixels.channels = reader.channels();

  pixels.allocate();
  std::vector<JSAMPROW> rows;
  rows.reserve(static_cast<std::size_t>(pixels.height));
  for (int64_t y = 0; y < pixels.height; ++y) rows.push_back(pixels.bytes.get() + y * pixels.width * pixels.channels);
  require(reader.read_rows(rows.data()));
  return pixels;
}

}  // namespace gantry::image_folder
