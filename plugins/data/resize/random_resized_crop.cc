#include <ATen/ops/empty.h>

#include <cmath>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/image_transform.h"
#include "interpolation.h"

namespace gantry {

namespace {

struct Box {
  int64_t top, left, height, width;
};

class RandomResizedCrop final : public ImageTransform {
 public:
  static void declare(Parameters& p) {
    ImageTransform::declare(p);
    Interpolation::declare(p);
    p.add<std::vector<int64_t>>("SIZE").at_least(1).at_most(1e6).not_empty().unit("pixels").help(
        "Height and width of the result, or one number for both.");
    p.add<std::vector<double>>("SCALE", {0.08, 1.0})
        .above(0)
        .at_most(1)
        .help("Least and largest share of the image's area that is cut out.");
    p.add<std::vector<double>>("RATIO", {3.0 / 4, 4.0 / 3})
        .above(0)
        .help("Least and largest ratio of width to height of what is cut out.");
  }

  RandomResizedCrop(const Config& config, Context&)
      : ImageTransform(config), interpolation_(config), scale_(range(config, "SCALE")), ratio_(range(config, "RATIO")) {
    const auto size = config.get<std::vector<int64_t>>("SIZE");
    if (size.size() > 2) {
      throw config.error("SIZE",
                         cat("SIZE is a height and a width, or one number for both, not ", size.size(), " numbers"));
    }
    height_ = size.front();
    width_ = size.back();
  }

 protected:
  at::Tensor transform(const std::string& key, const at::Tensor& images, std::span<CounterRng> random) const override {
    require_pictures(key, images);
    std::vector<int64_t> shape = images.sizes().vec();
    shape.end()[-2] = height_;
    shape.end()[-1] = width_;
    at::Tensor result = at::empty(shape, images.options());
    for (int64_t i = 0; i < images.size(0); ++i) {
      const Box box = draw(images.size(-2), images.size(-1), random[static_cast<std::size_t>(i)]);
      const at::Tensor piece = images.narrow(0, i, 1).narrow(-2, box.top, box.height).narrow(-1, box.left, box.width);
      result.narrow(0, i, 1).copy_(interpolation_.resized(key, piece, height_, width_));
    }
    return result;
  }

 private:
  static std::pair<double, double> range(const Config& config, const char* key) {
    const auto numbers = config.get<std::vector<double>>(key);
    if (numbers.size() != 2)
      throw config.error(key, cat("is a least and a largest value, two numbers, not ", numbers.size()));
    if (numbers[0] > numbers[1]) {
      throw config.error(key, cat("begins with the least value: ", number_text(numbers[0]), " is larger than ",
                                  number_text(numbers[1])));
    }
    return {numbers[0], numbers[1]};
  }

  static double between(std::pair<double, double> range, CounterRng& rng) {
    return range.first + (range.second - range.first) * rng.uniform();
  }
  static int64_t offset(int64_t room, CounterRng& rng) {
    return static_cast<int64_t>(rng.below(static_cast<uint64_t>(room) + 1));
  }
  static int64_t rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }  // halves to even

  // torchvision's way: an area, and a ratio whose logarithm is uniform; where ten of them do not fit, the largest piece
  // in the middle whose ratio is allowed.
  Box draw(int64_t height, int64_t width, CounterRng& rng) const {
    const auto h = static_cast<double>(height), w = static_cast<double>(width);
    const std::pair log_ratio = {std::log(ratio_.first), std::log(ratio_.second)};
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double area = h * w * between(scale_, rng);
      const double ratio = std::exp(between(log_ratio, rng));
      const int64_t cut_width = rounded(std::sqrt(area * ratio)), cut_height = rounded(std::sqrt(area / ratio));
      if (cut_width < 1 || cut_width > width || cut_height < 1 || cut_height > height) continue;
      const int64_t top = offset(height - cut_height, rng);
      return {top, offset(width - cut_width, rng), cut_height, cut_width};
    }
    Box box{0, 0, height, width};
    if (w / h < ratio_.first) box.height = std::max<int64_t>(1, rounded(w / ratio_.first));
    if (w / h > ratio_.second) box.width = std::max<int64_t>(1, rounded(h * ratio_.second));
    box.top = (height - box.height) / 2;
    box.left = (width - box.width) / 2;
    return box;
  }

  const Interpolation interpolation_;
  const std::pair<double, double> scale_, ratio_;
  int64_t height_ = 0, width_ = 0;
};

}  // namespace

GANTRY_TRANSFORM(RandomResizedCrop, "RandomResizedCrop",
                 "Cuts a piece of random area, ratio and place out of each image and resizes it.");

}  // namespace gantry
