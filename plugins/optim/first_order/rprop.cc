#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sign.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <gantry/plugin.h>
#include <gantry/text.h>

#include <tuple>

#include "foreach_optimizer.h"

namespace {

/// Resilient backpropagation as PyTorch's torch.optim.Rprop. Each number has a step size, at first lr:
///   it is multiplied by ETAS[1] where the gradient has the sign of the last one, by ETAS[0] where it has the other,
///   and kept within STEP_SIZES; where the sign changed the gradient counts as 0, now and as the next step's last one
///   p -= sign(g) * step size
class Rprop final : public ForeachOptimizer {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE", 1e-2)
        .at_least(0)
        .help("Size of a parameter's first step; later ones find their own.");
    p.add<std::vector<double>>("ETAS", {0.5, 1.2}).above(0).help("Factors that make a step shorter and longer.");
    p.add<std::vector<double>>("STEP_SIZES", {1e-6, 50}).at_least(0).help("The smallest and the largest step.");
  }

  Rprop(const gantry::Config& config, gantry::Context&) : ForeachOptimizer(config, {"prev", "step_size"}) {
    std::tie(shorter_, longer_) = two_numbers(config, "ETAS");
    if (!(shorter_ < 1 && longer_ > 1))
      throw config.error("ETAS",
                         gantry::cat("needs a number below 1 and one above 1, not [", shorter_, ", ", longer_, "]"));
    std::tie(smallest_, largest_) = two_numbers(config, "STEP_SIZES");
    if (smallest_ > largest_)
      throw config.error("STEP_SIZES", gantry::cat("is the smallest and the largest step, but ", smallest_,
                                                   " is more than ", largest_));
  }

 private:
  void start(gantry::Slot& slot, const gantry::ParamGroup& group) const override {
    slot.state[kOwn] = at::zeros_like(slot.parameter);
    slot.state[kOwn + 1] = at::full_like(slot.parameter, group.lr());
  }

  void update(gantry::SlotBatch& batch, const gantry::ParamGroup&) const override {
    const std::vector<at::Tensor>&last = batch.state[kOwn], &sizes = batch.state[kOwn + 1];
    const std::vector<at::Tensor> agreements = at::_foreach_mul(batch.gradients, last);  // 1, 0 or -1
    at::_foreach_sign_(agreements);

    const std::vector<at::Tensor> factors = at::_foreach_clamp_min(agreements, 0);
    at::_foreach_mul_(factors, longer_ - 1);
    const std::vector<at::Tensor> losses = at::_foreach_clamp_max(agreements, 0);
    at::_foreach_add_(factors, losses, 1 - shorter_);
    at::_foreach_add_(factors, 1);
    at::_foreach_mul_(sizes, factors);
    at::_foreach_clamp_min_(sizes, smallest_);
    at::_foreach_clamp_max_(sizes, largest_);

    at::_foreach_add_(agreements, 1);
    at::_foreach_clamp_max_(agreements, 1);  // 0 where the sign changed, else 1
    at::_foreach_copy_(last, batch.gradients);
    at::_foreach_mul_(last, agreements);
    const std::vector<at::Tensor> signs = at::_foreach_sign(last);
    at::_foreach_addcmul_(batch.parameters, signs, sizes, -1);
  }

  double shorter_ = 0, longer_ = 0, smallest_ = 0, largest_ = 0;
};

}  // namespace

GANTRY_OPTIMIZER(Rprop, "Rprop", "Steps by the gradient's sign alone, each number with a step size of its own.");
