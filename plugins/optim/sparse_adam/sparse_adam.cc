#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gantry/error.h>
#include <gantry/optimizer.h>
#include <gantry/plugin.h>
#include <gantry/text.h>

#include <cmath>

namespace {

/// PyTorch's SparseAdam: Adam's update for the entries that a sparse gradient has, and for those alone. The running
/// means of the others do not decay.
class SparseAdam final : public gantry::Optimizer {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE", 1e-3).at_least(0).help("Learning rate.");
    p.add<std::vector<double>>("BETAS", {0.9, 0.999})
        .at_least(0)
        .below(1)
        .help("Shares that the running means of the gradient and of its square keep at each step.");
    p.add<double>("EPS", 1e-8).above(0).help("Added to the divisor.");
  }

  SparseAdam(const gantry::Config& config, gantry::Context&) : Optimizer(config), eps_(config.get<double>("EPS")) {
    const auto betas = config.get<std::vector<double>>("BETAS");
    if (betas.size() != 2)
      throw config.error("BETAS", gantry::cat("is two numbers such as [0.9, 0.999], not ", betas.size()));
    for (gantry::ParamGroup& group : groups()) group.set_momentum(betas[0]);
    beta2_ = betas[1];
  }

  std::vector<std::string> state_names() const override { return {"step", "exp_avg", "exp_avg_sq"}; }

  void step(std::span<gantry::Slot> slots, const gantry::StepScope& scope) override {
    for (const gantry::Slot& slot : slots)  // before any of them is updated
      if (slot.gradient.defined() && !slot.gradient.is_sparse())
        throw gantry::Error(gantry::cat("SparseAdam updates from sparse gradients alone, and that of ", slot.name,
                                        " is dense. Use AdamW, freeze ", slot.name,
                                        ", or have it looked up sparsely (EmbeddingBag with SPARSE: true)"));
    if (scope.found_inf && scope.found_inf->item().toDouble() != 0) return;
    for (gantry::Slot& slot : slots)
      if (slot.gradient.defined()) update(slot, scope);
  }

 private:
  void update(gantry::Slot& slot, const gantry::StepScope& scope) const {
    if (!slot.state[0].defined()) {
      slot.state[0] = at::zeros({}, at::TensorOptions().dtype(at::kLong));
      slot.state[1] = at::zeros_like(slot.parameter);
      slot.state[2] = at::zeros_like(slot.parameter);
    }
    slot.state[0].add_(1);
    // The update is not linear, so each entry must be there once.
    const at::Tensor gradient = slot.gradient.coalesce();
    at::Tensor values = gradient._values();
    if (values.numel() == 0) return;
    if (scope.grad_scale) values = values.div(*scope.grad_scale);

    const auto sparse = [&](const at::Tensor& at_entries) {
      return at::_sparse_coo_tensor_unsafe(gradient._indices(), at_entries, gradient.sizes(), at_entries.options(),
                                           /*is_coalesced=*/true);
    };
    /// Moves the running mean's entries towards `target` and gives them as they are then.
    const auto moved = [&](at::Tensor& mean, const at::Tensor& target, double beta) {
      const at::Tensor old = mean.sparse_mask(gradient)._values();
      at::Tensor change = target.sub(old).mul_(1 - beta);
      mean.add_(sparse(change));
      return change.add_(old);
    };
    const gantry::ParamGroup& group = groups()[static_cast<std::size_t>(slot.group)];
    const double beta1 = group.momentum();
    const at::Tensor numerator = moved(slot.state[1], values, beta1);
    const at::Tensor divisor = moved(slot.state[2], values.pow(2), beta2_).sqrt_().add_(eps_);

    const auto step = static_cast<double>(slot.state[0].item().toLong());
    const double rate = group.lr() * std::sqrt(1 - std::pow(beta2_, step)) / (1 - std::pow(beta1, step));
    slot.parameter.add_(sparse(numerator.div(divisor).mul_(-rate)));
  }

  double beta2_ = 0, eps_;
};

}  // namespace

GANTRY_PLUGIN("gantry-sparse-adam", GANTRY_VERSION);
GANTRY_OPTIMIZER(SparseAdam, "SparseAdam", "Adam for sparse gradients, which updates what they touch alone.");
