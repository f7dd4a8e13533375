#include <gantry/torch.h>

#include "same_shape.h"

namespace {

class MseLoss final : public gantry::Loss {
 public:
  MseLoss(const gantry::Config&, gantry::Context&) {}
  at::Tensor forward(const at::Tensor& prediction, const at::Tensor& target) override {
    return at::mse_loss(prediction, target_like(prediction, target, "MSELoss"));
  }
};

class L1Loss final : public gantry::Loss {
 public:
  L1Loss(const gantry::Config&, gantry::Context&) {}
  at::Tensor forward(const at::Tensor& prediction, const at::Tensor& target) override {
    return at::l1_loss(prediction, target_like(prediction, target, "L1Loss"));
  }
};

}  // namespace

GANTRY_PLUGIN("gantry-losses", GANTRY_VERSION);
GANTRY_LOSS(MseLoss, "MSELoss", "The mean of the squared differences.");
GANTRY_LOSS(L1Loss, "L1Loss", "The mean of the absolute differences.");
