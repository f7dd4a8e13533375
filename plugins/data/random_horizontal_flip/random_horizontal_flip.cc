#include <ATen/ops/empty_like.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/transform.h"

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

class RandomHorizontalFlip final : public Transform {
 public:
  static void declare(Parameters& p) {
    p.add<double>("P", 0.5).at_least(0).at_most(1).help("Probability that an image is mirrored.");
    p.add<std::string>("INPUT_KEY", "img").not_empty().help("The tensor to mirror, width last.");
  }

  RandomHorizontalFlip(const Config& config, Context&)
      : config_(config), key_(config.get<std::string>("INPUT_KEY")), probability_(config.get<double>("P")) {}

  void apply(Sample& sample, CounterRng& rng) const override {
    const at::Tensor image = sample.tensor(key_).contiguous();
    check(image, 1);
    if (!chosen(rng)) return;
    at::Tensor result = at::empty_like(image);
    mirror(image.const_data_ptr(), result.mutable_data_ptr(), image.numel(), image.size(-1), image.element_size());
    sample.set(key_, std::move(result));
  }

  void apply_batch(Batch& batch, uint64_t seed, uint32_t stream) const override {
    const at::Tensor images = batch.tensor(key_).contiguous();
    check(images, 2);
    at::Tensor result = at::empty_like(images);  // the dataset may keep what it gave
    if (images.numel() > 0) {
      const auto* from = static_cast<const char*>(images.const_data_ptr());
      auto* to = static_cast<char*>(result.mutable_data_ptr());
      const int64_t elements = images.numel() / images.size(0);
      const auto bytes = static_cast<std::size_t>(elements) * images.element_size();
      for (int64_t i = 0; i < images.size(0); ++i, from += bytes, to += bytes) {
        CounterRng rng(seed, static_cast<uint64_t>(batch.first_position + i), stream);
        if (chosen(rng)) {
          mirror(from, to, elements, images.size(-1), images.element_size());
        } else {
          std::memcpy(to, from, bytes);
        }
      }
    }
    batch.set(key_, std::move(result));
  }

 private:
  bool chosen(CounterRng& rng) const { return rng.uniform() < probability_; }

  void check(const at::Tensor& images, int64_t dimensions) const {
    if (images.dim() < dimensions)
      throw config_.error("INPUT_KEY", cat("'", key_, "' has shape ", images.sizes(), ": it has no width to mirror"));
    const std::size_t size = images.element_size();
    if (size != 1 && size != 2 && size != 4 && size != 8) {
      throw config_.error("INPUT_KEY", cat("'", key_, "' is of type ", images.scalar_type(), " with elements of ", size,
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

  const Config config_;
  const std::string key_;
  const double probability_;
};

}  // namespace

GANTRY_PLUGIN("gantry-random-horizontal-flip", GANTRY_VERSION);
GANTRY_TRANSFORM(RandomHorizontalFlip, "RandomHorizontalFlip",
                 "Mirrors images left to right, each with probability P.");

}  // namespace gantry
