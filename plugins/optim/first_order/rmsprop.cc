#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <gantry/plugin.h>

#include "foreach_optimizer.h"

namespace {

/// As PyTorch's torch.optim.RMSprop:
///   g += WEIGHT_DECAY * p;  s = ALPHA * s + (1 - ALPHA) * g^2
///   d = g / (sqrt(s) + EPS), with CENTERED s - m^2 in s's place, m the running mean of g
///   p -= lr * d, with MOMENTUM b = MOMENTUM * b + d in d's place
class RmsProp final : public ForeachOptimizer {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE", 1e-2).at_least(0).help("Learning rate.");
    p.add<double>("ALPHA", 0.99).at_least(0).at_most(1).help("Share that the running means keep at each step.");
    p.add<double>("EPS", 1e-8).at_least(0).help("Added to the divisor.");
    p.add<double>("WEIGHT_DECAY", 0).at_least(0).help("L2 penalty, added to the gradient.");
    p.add<double>("MOMENTUM", 0).at_least(0).help("Share of the last update that is kept.");
    p.add<bool>("CENTERED", false).help("Divide by the deviation from the gradient's running mean.");
  }

  RmsProp(const gantry::Config& config, gantry::Context&)
      : ForeachOptimizer(config, own_state(config)),
        alpha_(config.get<double>("ALPHA")),
        eps_(config.get<double>("EPS")),
        has_momentum_(config.get<double>("MOMENTUM") != 0),
        centered_(config.get<bool>("CENTERED")) {
    if (!has_momentum_) return;
    for (gantry::ParamGroup& group : groups()) group.set_momentum(config.get<double>("MOMENTUM"));
  }

 private:
  static std::vector<std::string> own_state(const gantry::Config& config) {
    std::vector<std::string> names = {"square_avg"};
    if (config.get<double>("MOMENTUM") != 0) names.emplace_back("momentum_buffer");
    if (config.get<bool>("CENTERED")) names.emplace_back("grad_avg");
    return names;
  }

  void update(gantry::SlotBatch& batch, const gantry::ParamGroup& group) const override {
    const std::vector<at::Tensor>& squares = batch.state[kOwn];
    const std::vector<at::Tensor> gradients = penalized_gradients(batch, group);
    at::_foreach_mul_(squares, alpha_);
    at::_foreach_addcmul_(squares, gradients, gradients, 1 - alpha_);
    const std::vector<at::Tensor> divisors = centered_ ? variances(batch, gradients) : at::_foreach_sqrt(squares);
    if (centered_) at::_foreach_sqrt_(divisors);
    at::_foreach_add_(divisors, eps_);

    // A schedule may take the momentum away for a while.
    if (has_momentum_ && group.momentum() != 0) {
      const std::vector<at::Tensor>& buffers = batch.state[kOwn + 1];
      at::_foreach_mul_(buffers, group.momentum());
      at::_foreach_addcdiv_(buffers, gradients, divisors);
      at::_foreach_add_(batch.parameters, buffers, -group.lr());
    } else {
      at::_foreach_addcdiv_(batch.parameters, gradients, divisors, -group.lr());
    }
  }

  std::vector<at::Tensor> variances(const gantry::SlotBatch& batch, const std::vector<at::Tensor>& gradients) const {
    const std::vector<at::Tensor>& means = batch.state.back();
    at::_foreach_lerp_(means, gradients, 1 - alpha_);
    return at::_foreach_addcmul(batch.state[kOwn], means, means, -1);
  }

  double alpha_, eps_;
  bool has_momentum_, centered_;
};

}  // namespace

GANTRY_OPTIMIZER(RmsProp, "RMSprop", "Divides by the root of the gradient's running mean square.");
