#include "gantry/gantry.h"
#include "gantry/image_transform.h"

namespace gantry {

namespace {

class ImageToTensor final : public ImageTransform, public PointwiseTransform {
 public:
  static void declare(Parameters& p) { ImageTransform::declare(p); }
  ImageToTensor(const Config& config, Context&) : ImageTransform(config) {}

  std::string pointwise_key() const override { return in_place_key(); }

 protected:
  at::Tensor transform(const std::string& key, const at::Tensor& images, std::span<CounterRng>) const override {
    if (images.scalar_type() == at::kByte) return images.to(at::kFloat).div_(255);
    if (images.is_floating_point() || images.scalar_type() == at::kBool) return images.to(at::kFloat);
    throw config().error("INPUT_KEY",
                         cat("names '", key,
                             "', which holds integers of more than a byte; ImageToTensor takes bytes, "
                             "whose largest value is known to be 255, and numbers that lie in [0, 1] already"));
  }
};

}  // namespace

GANTRY_PLUGIN("gantry-image-to-tensor", GANTRY_VERSION);
GANTRY_TRANSFORM(ImageToTensor, "ImageToTensor", "Makes bytes of images numbers of single precision in [0, 1].");

}  // namespace gantry
