#include <ATen/ops/tensor.h>

#include <utility>

#include "gantry/gantry.h"
#include "gantry/image_transform.h"

namespace gantry {

namespace {

class Normalize final : public ImageTransform, public PointwiseTransform {
 public:
  static void declare(Parameters& p) {
    ImageTransform::declare(p);
    p.add<std::vector<double>>("MEAN").not_empty().help(
        "Subtracted, one number per channel. Bytes are divided by 255 first, so it is of values from 0 to 1.");
    p.add<std::vector<double>>("STD").above(0).not_empty().help("Divided by after that, one number per channel.");
  }

  Normalize(const Config& config, Context&)
      : ImageTransform(config),
        mean_(at::tensor(config.get<std::vector<double>>("MEAN"), at::kDouble)),
        std_(at::tensor(config.get<std::vector<double>>("STD"), at::kDouble)) {
    if (mean_.numel() != std_.numel()) {
      throw config.error(
          "STD", cat("has ", std_.numel(), " numbers, MEAN has ", mean_.numel(), "; each needs one per channel"));
    }
  }

  std::string pointwise_key() const override { return in_place_key(); }

 protected:
  // In PyTorch's order of operations, (x.float() / 255 - mean) / std, so that the bits are PyTorch's.
  at::Tensor transform(const std::string& key, const at::Tensor& images, std::span<CounterRng>) const override {
    const int64_t channels = images.dim() < 2 ? 0 : images.size(1);
    if (channels != mean_.numel()) {
      throw config().error(
          "MEAN", cat("has ", mean_.numel(), " numbers, but '", key, "' has ", channels, " channels; each needs one"));
    }
    const bool bytes = images.scalar_type() == at::kByte;
    if (!bytes && !images.is_floating_point()) {
      throw config().error("INPUT_KEY", cat("names '", key,
                                            "', which holds integers of more than a byte; "
                                            "Normalize takes bytes and floating-point numbers"));
    }
    const at::Tensor x = bytes ? images.to(at::kFloat).div_(255) : images;
    std::vector<int64_t> shape(static_cast<std::size_t>(images.dim() - 1), 1);
    shape[0] = mean_.numel();
    return x.sub(mean_.to(x.scalar_type()).view(shape)).div_(std_.to(x.scalar_type()).view(shape));
  }

 private:
  const at::Tensor mean_, std_;
};

}  // namespace

GANTRY_PLUGIN("gantry-normalize", GANTRY_VERSION);
GANTRY_TRANSFORM(Normalize, "Normalize", "Subtracts a mean and divides by a standard deviation, per channel.");

}  // namespace gantry
