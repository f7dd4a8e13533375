#include <ATen/ops/empty_like.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/image_transform.h"

namespace gantry {

namespace {

// Element is an unsigned integer of the elements' size: values are moved, never computed with.
template <class Element>
void mirror_rows(const void* from, void* to, int64_t rows, int64_t width) {
  const auto* in = static_cast<const Element*>(from);
  auto* out = static_cast<Element*>(to);
  for (int64_t row = 0; row < rows; ++row, in += width, out += width)
    for (int64_t x = 0; x < width; ++x) out[x] = in[width - 1 - x];
}

class RandomHorizontalFlip final : public ImageTransform {
 public:
  static void declare(Parameters& p) {
    ImageTransform::declare(p);
    p.add<double>("P", 0.5).at_least(0).at_most(1).help("Probability that an image is mirrored.");
  }

  RandomHorizontalFlip(const Config& config, Context&)
      : ImageTransform(config), probability_(config.get<double>("P")) {}

 protected:
  at::Tensor transform(const std::string& key, const at::Tensor& given, std::span<CounterRng> random) const override {
    const at::Tensor images = given.contiguous();
    check(key, images);
    at::Tensor result = at::empty_like(images);  // the dataset may keep what it gave
    if (images.numel() == 0) return result;
    const auto* from = static_cast<const char*>(images.const_data_ptr());
    auto* to = static_cast<char*>(result.mutable_data_ptr());
    const int64_t elements = images.numel() / images.size(0);
    const auto bytes = static_cast<std::size_t>(elements) * images.element_size();
    for (CounterRng& rng : random) {
      if (rng.uniform() < probability_) {
        mirror(from, to, elements, images.size(-1), images.element_size());
      } else {
        std::memcpy(to, from, bytes);
      }
      from += bytes;
      to += bytes;
    }
    return result;
  }

 private:
  void check(const std::string& key, const at::Tensor& images) const {
    if (images.dim() < 2)
      throw config().error("INPUT_KEY", cat("'", key, "' has shape ", images.sizes(), ": it has no width to mirror"));
    const std::size_t size = images.element_size();
    if (size != 1 && size != 2 && size != 4 && size != 8) {
      throw config().error("INPUT_KEY", cat("'", key, "' is of type ", images.scalar_type(), " with elements of ", size,
                                            " bytes; RandomHorizontalFlip takes 1, 2, 4 or 8"));
    }
  }

  static void mirror(const void* from, void* to, int64_t elements, int64_t width, std::size_t element_size) {
    if (elements == 0) return;
    const int64_t rows = elements / width;
    switch (element_size) {
      case 1:
        return mirror_rows<uint8_t>(from, to, rows, width);
      case 2:
        return mirror_rows<uint16_t>(from, to, rows, width);
      case 4:
        return mirror_rows<uint32_t>(from, to, rows, width);
      default:
        return mirror_rows<uint64_t>(from, to, rows, width);
    }
  }

  const double probability_;
};

}  // namespace

GANTRY_PLUGIN("gantry-random-horizontal-flip", GANTRY_VERSION);
GANTRY_TRANSFORM(RandomHorizontalFlip, "RandomHorizontalFlip",
                 "Mirrors images left to right, each with probability P.");

}  // namespace gantry
