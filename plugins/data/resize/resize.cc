#include <algorithm>

#include "gantry/gantry.h"
#include "gantry/image_transform.h"
#include "interpolation.h"

namespace gantry {

namespace {

class Resize final : public ImageTransform {
 public:
  static void declare(Parameters& p) {
    ImageTransform::declare(p);
    Interpolation::declare(p);
    p.add<std::vector<int64_t>>("SIZE").at_least(1).at_most(1e6).not_empty().unit("pixels").help(
        "Height and width; one number is the shorter side's, and the longer one keeps the proportions.");
  }

  Resize(const Config& config, Context&)
      : ImageTransform(config), interpolation_(config), size_(config.get<std::vector<int64_t>>("SIZE")) {
    if (size_.size() <= 2) return;
    throw config.error("SIZE", cat("SIZE is a height and a width, or one number for the shorter side, not ",
                                   size_.size(), " numbers"));
  }

 protected:
  at::Tensor transform(const std::string& key, const at::Tensor& images, std::span<CounterRng>) const override {
    require_pictures(key, images);
    int64_t height = size_.front(), width = size_.back();
    if (size_.size() == 1) {
      // torchvision's rounding, which is towards zero.
      const int64_t given_height = images.size(-2), given_width = images.size(-1);
      const auto longer = static_cast<int64_t>(static_cast<double>(size_[0]) *
                                               static_cast<double>(std::max(given_height, given_width)) /
                                               static_cast<double>(std::min(given_height, given_width)));
      (given_height < given_width ? width : height) = longer;
    }
    return interpolation_.resized(key, images, height, width);
  }

 private:
  const Interpolation interpolation_;
  const std::vector<int64_t> size_;
};

}  // namespace

GANTRY_PLUGIN("gantry-resize", GANTRY_VERSION);
GANTRY_TRANSFORM(Resize, "Resize", "Gives images another size, with antialiasing.");

}  // namespace gantry
