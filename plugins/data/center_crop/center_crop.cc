#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <cmath>

#include "gantry/gantry.h"
#include "gantry/image_transform.h"

namespace gantry {

namespace {

class CenterCrop final : public ImageTransform {
 public:
  static void declare(Parameters& p) {
    ImageTransform::declare(p);
    p.add<std::vector<int64_t>>("SIZE").at_least(1).at_most(1e6).not_empty().unit("pixels").help(
        "Height and width of the piece, or one number for both.");
  }

  CenterCrop(const Config& config, Context&) : ImageTransform(config) {
    const auto size = config.get<std::vector<int64_t>>("SIZE");
    if (size.size() > 2) {
      throw config.error("SIZE",
                         cat("SIZE is a height and a width, or one number for both, not ", size.size(), " numbers"));
    }
    height_ = size.front();
    width_ = size.back();
  }

 protected:
  at::Tensor transform(const std::string& key, const at::Tensor& images, std::span<CounterRng>) const override {
    require_pictures(key, images);
    const int64_t missing_rows = std::max<int64_t>(0, height_ - images.size(-2));
    const int64_t missing_columns = std::max<int64_t>(0, width_ - images.size(-1));
    at::Tensor padded = images;
    if (missing_rows > 0 || missing_columns > 0) {
      padded = at::constant_pad_nd(images, {missing_columns / 2, missing_columns - missing_columns / 2,
                                            missing_rows / 2, missing_rows - missing_rows / 2});
    }
    return padded.narrow(-2, begin(padded.size(-2), height_), height_)
        .narrow(-1, begin(padded.size(-1), width_), width_)
        .contiguous();
  }

 private:
  // As torchvision rounds, halves to even.
  static int64_t begin(int64_t extent, int64_t size) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(extent - size) / 2));
  }

  int64_t height_ = 0, width_ = 0;
};

}  // namespace

GANTRY_PLUGIN("gantry-center-crop", GANTRY_VERSION);
GANTRY_TRANSFORM(CenterCrop, "CenterCrop", "Cuts the middle out of each image; adds zeros around one that is smaller.");

}  // namespace gantry
