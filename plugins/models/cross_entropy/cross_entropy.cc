#include <gantry/torch.h>

namespace {

class CrossEntropy final : public gantry::Loss {
 public:
  CrossEntropy(const gantry::Config&, gantry::Context&) {}

  at::Tensor forward(const at::Tensor& prediction, const at::Tensor& target) override {
    return at::cross_entropy_loss(prediction, target);
  }
};

}  // namespace

GANTRY_PLUGIN("gantry-cross-entropy", GANTRY_VERSION);
GANTRY_LOSS(CrossEntropy, "CrossEntropy", "Softmax cross-entropy with class indices, the mean over the batch.");
