#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/full_like.h>
#include <gantry/plugin.h>

#include "foreach_optimizer.h"

namespace {

/// As PyTorch's torch.optim.Adagrad, on LibTorch's fused kernel:
///   g += WEIGHT_DECAY * p;  s += g^2;  p -= lr / (1 + (t - 1) * LEARNING_RATE_DECAY) * g / (sqrt(s) + EPS)
class Adagrad final : public ForeachOptimizer {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE", 1e-2).at_least(0).help("Learning rate.");
    p.add<double>("LEARNING_RATE_DECAY", 0)
        .at_least(0)
        .help("The rate is divided by 1 + this times the number of steps before.");
    p.add<double>("INITIAL_ACCUMULATOR_VALUE", 0).at_least(0).help("What the sums of squares start from.");
    p.add<double>("EPS", 1e-10).at_least(0).help("Added to the divisor.");
    p.add<double>("WEIGHT_DECAY", 0).at_least(0).help("L2 penalty, added to the gradient.");
  }

  Adagrad(const gantry::Config& config, gantry::Context&)
      : ForeachOptimizer(config, {"sum"}),
        decay_(config.get<double>("LEARNING_RATE_DECAY")),
        initial_(config.get<double>("INITIAL_ACCUMULATOR_VALUE")),
        eps_(config.get<double>("EPS")) {}

 private:
  void start(gantry::Slot& slot, const gantry::ParamGroup&) const override {
    slot.state[kOwn] = at::full_like(slot.parameter, initial_);
  }

  void update(gantry::SlotBatch& batch, const gantry::ParamGroup& group) const override {
    at::_fused_adagrad_(batch.parameters, batch.gradients, batch.state[kOwn], batch.state[kStep], group.lr(), decay_,
                        group.weight_decay(), eps_, /*maximize=*/false);
  }

  double decay_, initial_, eps_;
};

}  // namespace

GANTRY_OPTIMIZER(Adagrad, "Adagrad", "Divides by the root of the sum of all squared gradients, fused.");
