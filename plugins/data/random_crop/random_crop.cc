#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/image_transform.h"

namespace gantry {

namespace {

/// A piece of an image that is surrounded by FILL, copied row by row: whatever the dtype, bytes are moved.
class RandomCrop final : public ImageTransform {
 public:
  static void declare(Parameters& p) {
    ImageTransform::declare(p);
    p.add<std::vector<int64_t>>("SIZE").at_least(1).not_empty().help("Height and width of the piece, or one number.");
    p.add<int64_t>("PADDING", 0).unit("pixels").at_least(0).at_most(1e6).help("Added on each side of the image first.");
    p.add<double>("FILL", 0).help("Value of the added pixels.");
    p.foreign("PAD_IF_NEEDED", {"false"}, "use a PADDING that is large enough");
    p.foreign("PADDING_MODE", {"constant"}, "leave it out: what PADDING adds has the value of FILL");
  }

  RandomCrop(const Config& config, Context&)
      : ImageTransform(config), padding_(config.get<int64_t>("PADDING")), fill_(config.get<double>("FILL")) {
    const auto size = config.get<std::vector<int64_t>>("SIZE");
    if (size.size() > 2)
      throw config.error("SIZE", cat("SIZE is a height and a width, or one number for both, not ", size.size()));
    height_ = size.front();
    width_ = size.back();
  }

 protected:
  at::Tensor transform(const std::string& key, const at::Tensor& given, std::span<CounterRng> random) const override {
    const at::Tensor images = given.contiguous();
    const Piece piece = piece_of(key, images);
    at::Tensor result = at::empty(piece.shape, images.options());
    if (result.numel() == 0) return result;
    const auto* from = static_cast<const char*>(images.const_data_ptr());
    auto* to = static_cast<char*>(result.mutable_data_ptr());
    const std::size_t from_bytes = images.nbytes() / static_cast<std::size_t>(images.size(0));
    const std::size_t to_bytes = result.nbytes() / static_cast<std::size_t>(images.size(0));
    for (CounterRng& rng : random) {
      crop(from, to, piece, rng);
      from += from_bytes;
      to += to_bytes;
    }
    return result;
  }

 private:
  struct Piece {
    std::vector<int64_t> shape;     // of the result
    int64_t planes, height, width;  // of one image: planes of height x width
    std::size_t element;            // bytes
    at::Tensor fill;                // one row of the result
  };

  Piece piece_of(const std::string& key, const at::Tensor& images) const {
    require_pictures(key, images);
    Piece piece;
    piece.shape = images.sizes().vec();
    piece.height = images.size(-2);
    piece.width = images.size(-1);
    if (height_ > piece.height + 2 * padding_ || width_ > piece.width + 2 * padding_) {
      throw config().error(
          "SIZE", cat("SIZE is ", height_, " x ", width_, ", but '", key, "' has images of ", piece.height, " x ",
                      piece.width, " and PADDING is ", padding_, ": make SIZE smaller or PADDING larger"));
    }
    piece.shape.end()[-2] = height_;
    piece.shape.end()[-1] = width_;
    piece.planes = 1;
    for (std::size_t d = 1; d + 2 < piece.shape.size(); ++d) piece.planes *= piece.shape[d];
    piece.element = images.element_size();
    if (padding_ > 0) piece.fill = fill_row(key, images);
    return piece;
  }

  at::Tensor fill_row(const std::string& key, const at::Tensor& images) const {
    const auto type = images.scalar_type();
    const at::Tensor value = at::scalar_tensor(fill_, at::kDouble).to(type);
    if (at::isIntegralType(type, /*includeBool=*/true) && value.to(at::kDouble).item<double>() != fill_) {
      throw config().error("FILL",
                           cat("FILL is ", number_text(fill_), ", which '", key, "' of type ", type, " cannot hold"));
    }
    return value.expand({width_}).contiguous();
  }

  void crop(const char* from, char* to, const Piece& piece, CounterRng& rng) const {
    // Where the piece begins in the image, which is negative inside of the padding.
    const int64_t top = begin(piece.height, height_, rng);
    const int64_t left = begin(piece.width, width_, rng);
    const auto* fill = piece.fill.defined() ? static_cast<const char*>(piece.fill.const_data_ptr()) : nullptr;
    const int64_t first = std::clamp<int64_t>(-left, 0, width_);  // columns that come from the image
    const int64_t last = std::clamp<int64_t>(piece.width - left, first, width_);
    const std::size_t before = static_cast<std::size_t>(first) * piece.element;
    const std::size_t inside = static_cast<std::size_t>(last - first) * piece.element;
    const std::size_t row = static_cast<std::size_t>(width_) * piece.element;
    for (int64_t plane = 0; plane < piece.planes; ++plane) {
      for (int64_t y = 0; y < height_; ++y, to += row) {
        const int64_t line = top + y;
        if (line < 0 || line >= piece.height || inside == 0) {
          std::memcpy(to, fill, row);
          continue;
        }
        const int64_t pixel = (plane * piece.height + line) * piece.width + left + first;
        if (before > 0) std::memcpy(to, fill, before);
        std::memcpy(to + before, from + pixel * static_cast<int64_t>(piece.element), inside);
        if (before + inside < row) std::memcpy(to + before + inside, fill, row - before - inside);
      }
    }
  }

  int64_t begin(int64_t extent, int64_t size, CounterRng& rng) const {
    return static_cast<int64_t>(rng.below(static_cast<uint64_t>(extent + 2 * padding_ - size + 1))) - padding_;
  }

  const int64_t padding_;
  const double fill_;
  int64_t height_ = 0, width_ = 0;
};

}  // namespace

GANTRY_PLUGIN("gantry-random-crop", GANTRY_VERSION);
GANTRY_TRANSFORM(RandomCrop, "RandomCrop", "Cuts a piece out of each image at a random place, after padding it.");

}  // namespace gantry
