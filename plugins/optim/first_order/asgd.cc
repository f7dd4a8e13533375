#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <gantry/plugin.h>

#include "foreach_optimizer.h"

namespace {

/// Averaged stochastic gradient descent as PyTorch's torch.optim.ASGD, with eta = lr and mu = 1 at first:
///   g += WEIGHT_DECAY * p;  p = p * (1 - LAMBD * eta) - eta * g;  ax += mu * (p - ax)
///   eta = lr / (1 + LAMBD * lr * t)^ALPHA;  mu = 1 / max(1, t - T0)
class Asgd final : public ForeachOptimizer {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE", 1e-2).at_least(0).help("Learning rate of the first step.");
    p.add<double>("LAMBD", 1e-4).at_least(0).help("How fast the rate falls and parameters shrink.");
    p.add<double>("ALPHA", 0.75).at_least(0).help("Power of the rate's fall.");
    p.add<double>("T0", 1e6).at_least(0).unit("steps").help("When averaging begins.");
    p.add<double>("WEIGHT_DECAY", 0).at_least(0).help("L2 penalty, added to the gradient.");
  }

  Asgd(const gantry::Config& config, gantry::Context&)
      : ForeachOptimizer(config, {"eta", "mu", "ax"}),
        lambd_(config.get<double>("LAMBD")),
        alpha_(config.get<double>("ALPHA")),
        t0_(config.get<double>("T0")) {}

 private:
  static constexpr std::size_t kEta = kOwn, kMu = kOwn + 1, kAverage = kOwn + 2;

  void start(gantry::Slot& slot, const gantry::ParamGroup& group) const override {
    const at::TensorOptions scalar = slot.parameter.options().dtype(at::kFloat);
    slot.state[kEta] = at::full({}, group.lr(), scalar);
    slot.state[kMu] = at::ones({}, scalar);
    slot.state[kAverage] = at::zeros_like(slot.parameter);
  }

  void update(gantry::SlotBatch& batch, const gantry::ParamGroup& group) const override {
    const std::vector<at::Tensor> gradients = penalized_gradients(batch, group);
    const at::Tensor etas = as_vector(batch.state[kEta]);
    at::_foreach_mul_(batch.parameters, etas.mul(-lambd_).add_(1).unbind());
    at::_foreach_addcmul_(batch.parameters, gradients, etas.unbind(), -1);
    const at::Tensor mus = as_vector(batch.state[kMu]).to(batch.parameters.front().scalar_type());
    at::_foreach_lerp_(batch.state[kAverage], batch.parameters, mus.unbind());

    const at::Tensor t = as_vector(batch.state[kStep]);
    const at::Tensor falls = t.mul(lambd_ * group.lr()).add_(1).pow_(alpha_);
    at::_foreach_copy_(batch.state[kEta], falls.reciprocal_().mul_(group.lr()).unbind());
    at::_foreach_copy_(batch.state[kMu], t.sub(t0_).clamp_min_(1).reciprocal_().unbind());
  }

  double lambd_, alpha_, t0_;
};

}  // namespace

GANTRY_OPTIMIZER(Asgd, "ASGD", "Stochastic gradient descent that also keeps the average of its path.");
