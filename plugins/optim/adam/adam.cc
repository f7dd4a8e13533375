#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gantry/optimizer.h>
#include <gantry/plugin.h>
#include <gantry/slot_batches.h>
#include <gantry/text.h>

namespace {

enum class Decay { l2, decoupled };

/// Adam as PyTorch's torch.optim.Adam and AdamW, on LibTorch's fused kernels:
///   Decay::l2: g += WEIGHT_DECAY * p;  Decay::decoupled: p -= lr * WEIGHT_DECAY * p
///   m = b1 * m + (1 - b1) * g;  v = b2 * v + (1 - b2) * g^2
///   p -= lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + EPS), with AMSGRAD the largest v so far in v's place
class AdamBase : public gantry::Optimizer {
 public:
  std::vector<std::string> state_names() const override {
    std::vector<std::string> names = {"step", "exp_avg", "exp_avg_sq"};
    if (amsgrad_) names.emplace_back("max_exp_avg_sq");
    return names;
  }

  void step(std::span<gantry::Slot> slots, const gantry::StepScope& scope) override {
    batches_.for_each(slots, start, [&](gantry::SlotBatch& batch) {
      const gantry::ParamGroup& group = groups()[batch.group];
      const std::vector<at::Tensor>& steps = batch.state[0];
      // As PyTorch does it: the kernel takes the number of this step, and a step that it leaves out is not counted.
      gantry::count_up(steps);
      Kernel* kernel = at::_fused_adam_;
      if (decay_ == Decay::decoupled) kernel = at::_fused_adamw_;
      kernel(batch.parameters, batch.gradients, batch.state[1], batch.state[2],
             amsgrad_ ? at::TensorList(batch.state[3]) : at::TensorList(), steps, group.lr(), group.momentum(), beta2_,
             group.weight_decay(), eps_, amsgrad_, /*maximize=*/false, scope.grad_scale, scope.found_inf);
      count_down(steps, scope);
    });
  }

 protected:
  static void declare_with(gantry::Parameters& p, double weight_decay, const char* weight_decay_help) {
    p.add<double>("LEARNING_RATE", 1e-3).at_least(0).help("Learning rate.");
    p.add<std::vector<double>>("BETAS", {0.9, 0.999})
        .at_least(0)
        .below(1)
        .help("Shares that the running means of the gradient and of its square keep at each step.");
    p.add<double>("EPS", 1e-8).at_least(0).help("Added to the divisor.");
    p.add<double>("WEIGHT_DECAY", weight_decay).at_least(0).help(weight_decay_help);
    p.add<bool>("AMSGRAD", false).help("Divide by the largest running mean of the square so far.");
  }

  AdamBase(const gantry::Config& config, Decay decay)
      : Optimizer(config), decay_(decay), eps_(config.get<double>("EPS")), amsgrad_(config.get<bool>("AMSGRAD")) {
    const auto betas = config.get<std::vector<double>>("BETAS");
    if (betas.size() != 2)
      throw config.error("BETAS", gantry::cat("is two numbers such as [0.9, 0.999], not ", betas.size()));
    for (gantry::ParamGroup& group : groups()) group.set_momentum(betas[0]);
    beta2_ = betas[1];
  }

 private:
  using Kernel = void(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                      double, double, double, double, double, bool, bool, const std::optional<at::Tensor>&,
                      const std::optional<at::Tensor>&);

  static void start(gantry::Slot& slot) {
    slot.state[0] = at::zeros({}, slot.parameter.options().dtype(at::kFloat));
    for (std::size_t i = 1; i < slot.state.size(); ++i) slot.state[i] = at::zeros_like(slot.parameter);
  }

  void count_down(const std::vector<at::Tensor>& steps, const gantry::StepScope& scope) {
    if (!scope.found_inf) return;
    found_infs_.assign(steps.size(), *scope.found_inf);
    at::_foreach_sub_(steps, found_infs_);
    found_infs_.clear();
  }

  Decay decay_;
  double beta2_ = 0, eps_;
  bool amsgrad_;
  gantry::SlotBatches batches_;
  std::vector<at::Tensor> found_infs_;  // scratch, kept for its capacity
};

class Adam final : public AdamBase {
 public:
  static void declare(gantry::Parameters& p) { declare_with(p, 0, "L2 penalty, added to the gradient."); }
  Adam(const gantry::Config& config, gantry::Context&) : AdamBase(config, Decay::l2) {}
};

class AdamW final : public AdamBase {
 public:
  static void declare(gantry::Parameters& p) {
    declare_with(p, 0.01, "Parameters shrink by this share, times the learning rate, at each step.");
  }
  AdamW(const gantry::Config& config, gantry::Context&) : AdamBase(config, Decay::decoupled) {}
};

}  // namespace

GANTRY_PLUGIN("gantry-adam", GANTRY_VERSION);
GANTRY_OPTIMIZER(Adam, "Adam", "Adam, fused; weight decay is an L2 penalty.");
GANTRY_OPTIMIZER(AdamW, "AdamW", "Adam with weight decay apart from the gradient, fused.");
