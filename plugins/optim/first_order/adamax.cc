#include <ATen/ops/_foreach_abs.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_maximum.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/pow.h>
#include <gantry/plugin.h>

#include "foreach_optimizer.h"

namespace {

/// As PyTorch's torch.optim.Adamax:
///   g += WEIGHT_DECAY * p;  m = b1 * m + (1 - b1) * g;  u = max(b2 * u, |g| + EPS);  p -= lr / (1 - b1^t) * m / u
class Adamax final : public ForeachOptimizer {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE", 2e-3).at_least(0).help("Learning rate.");
    p.add<std::vector<double>>("BETAS", {0.9, 0.999})
        .at_least(0)
        .below(1)
        .help("Shares that the running mean and the running maximum of the gradient keep at each step.");
    p.add<double>("EPS", 1e-8).at_least(0).help("Added to the gradient's size.");
    p.add<double>("WEIGHT_DECAY", 0).at_least(0).help("L2 penalty, added to the gradient.");
  }

  Adamax(const gantry::Config& config, gantry::Context&)
      : ForeachOptimizer(config, {"exp_avg", "exp_inf"}), eps_(config.get<double>("EPS")) {
    const auto [beta1, beta2] = two_numbers(config, "BETAS");
    for (gantry::ParamGroup& group : groups()) group.set_momentum(beta1);
    beta2_ = beta2;
  }

 private:
  void update(gantry::SlotBatch& batch, const gantry::ParamGroup& group) const override {
    const std::vector<at::Tensor>&means = batch.state[kOwn], &largest = batch.state[kOwn + 1];
    const std::vector<at::Tensor> gradients = penalized_gradients(batch, group);
    at::_foreach_lerp_(means, gradients, 1 - group.momentum());
    const std::vector<at::Tensor> sizes = at::_foreach_abs(gradients);
    at::_foreach_add_(sizes, eps_);
    at::_foreach_mul_(largest, beta2_);
    at::_foreach_maximum_(largest, sizes);
    // -lr / (1 - b1^t)
    const at::Tensor rates = at::pow(group.momentum(), as_vector(batch.state[kStep])).sub_(1).reciprocal_();
    const std::vector<at::Tensor> steps = at::_foreach_mul(means, rates.mul_(group.lr()).unbind());
    at::_foreach_addcdiv_(batch.parameters, steps, largest);
  }

  double eps_, beta2_ = 0;
};

}  // namespace

GANTRY_OPTIMIZER(Adamax, "Adamax", "Adam with the largest gradient so far in place of its mean square.");
