#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <gantry/plugin.h>

#include "foreach_optimizer.h"

namespace {

/// As PyTorch's torch.optim.Adadelta:
///   g += WEIGHT_DECAY * p;  s = RHO * s + (1 - RHO) * g^2;  d = g * sqrt(a + EPS) / sqrt(s + EPS)
///   a = RHO * a + (1 - RHO) * d^2;  p -= lr * d
class Adadelta final : public ForeachOptimizer {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE", 1.0).at_least(0).help("Factor of the steps, which have a length of their own.");
    p.add<double>("RHO", 0.9)
        .at_least(0)
        .at_most(1)
        .help("Share that the running means of squares keep at each step. PyTorch's default; SCEPTER's is 0.");
    p.add<double>("EPS", 1e-6).at_least(0).help("Added to the means before their roots are taken.");
    p.add<double>("WEIGHT_DECAY", 0).at_least(0).help("L2 penalty, added to the gradient.");
  }

  Adadelta(const gantry::Config& config, gantry::Context&)
      : ForeachOptimizer(config, {"square_avg", "acc_delta"}),
        rho_(config.get<double>("RHO")),
        eps_(config.get<double>("EPS")) {}

 private:
  void update(gantry::SlotBatch& batch, const gantry::ParamGroup& group) const override {
    const std::vector<at::Tensor>&squares = batch.state[kOwn], &deltas = batch.state[kOwn + 1];
    const std::vector<at::Tensor> gradients = penalized_gradients(batch, group);
    at::_foreach_mul_(squares, rho_);
    at::_foreach_addcmul_(squares, gradients, gradients, 1 - rho_);
    const std::vector<at::Tensor> divisors = at::_foreach_add(squares, eps_);
    at::_foreach_sqrt_(divisors);
    const std::vector<at::Tensor> steps = at::_foreach_add(deltas, eps_);
    at::_foreach_sqrt_(steps);
    at::_foreach_div_(steps, divisors);
    at::_foreach_mul_(steps, gradients);
    at::_foreach_mul_(deltas, rho_);
    at::_foreach_addcmul_(deltas, steps, steps, 1 - rho_);
    at::_foreach_add_(batch.parameters, steps, -group.lr());
  }

  double rho_, eps_;
};

}  // namespace

GANTRY_OPTIMIZER(Adadelta, "Adadelta", "Measures its steps by earlier ones, so that they need no learning rate.");
