#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gantry/optimizer.h>
#include <gantry/plugin.h>
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
    for (std::size_t g = 0; g < groups().size(); ++g) {
      collect(slots, static_cast<int64_t>(g));
      if (parameters_.empty()) continue;
      // As PyTorch does it: the kernel takes the number of this step, and a step that it leaves out is not counted.
      count_up();
      Kernel* kernel = at::_fused_adam_;
      if (decay_ == Decay::decoupled) kernel = at::_fused_adamw_;
      kernel(parameters_, gradients_, means_, squares_, largest_squares_, steps_, groups()[g].lr(), beta1_, beta2_,
             weight_decay_, eps_, amsgrad_, /*maximize=*/false, scope.grad_scale, scope.found_inf);
      count_down(scope);
    }
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
      : Optimizer(config.get<double>("LEARNING_RATE")),
        decay_(decay),
        eps_(config.get<double>("EPS")),
        weight_decay_(config.get<double>("WEIGHT_DECAY")),
        amsgrad_(config.get<bool>("AMSGRAD")) {
    const auto betas = config.get<std::vector<double>>("BETAS");
    if (betas.size() != 2)
      throw config.error("BETAS", gantry::cat("BETAS is two numbers such as [0.9, 0.999], not ", betas.size()));
    beta1_ = betas[0];
    beta2_ = betas[1];
  }

 private:
  using Kernel = void(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                      double, double, double, double, double, bool, bool, const std::optional<at::Tensor>&,
                      const std::optional<at::Tensor>&);

  void collect(std::span<gantry::Slot> slots, int64_t group) {
    for (auto* list : {&parameters_, &gradients_, &steps_, &means_, &squares_, &largest_squares_}) list->clear();
    for (gantry::Slot& slot : slots) {
      if (slot.group != group || !slot.gradient.defined()) continue;
      if (!slot.state[0].defined()) slot.state[0] = at::zeros({}, slot.parameter.options().dtype(at::kFloat));
      for (std::size_t i = 1; i < slot.state.size(); ++i)
        if (!slot.state[i].defined()) slot.state[i] = at::zeros_like(slot.parameter);
      parameters_.push_back(slot.parameter);
      gradients_.push_back(slot.gradient);
      steps_.push_back(slot.state[0]);
      means_.push_back(slot.state[1]);
      squares_.push_back(slot.state[2]);
      if (amsgrad_) largest_squares_.push_back(slot.state[3]);
    }
  }

  // On the CPU the operators would cost more than the sums.
  void count_up() {
    if (!steps_.front().is_cpu()) return at::_foreach_add_(steps_, 1);
    for (const at::Tensor& step : steps_) *step.mutable_data_ptr<float>() += 1;
  }
  void count_down(const gantry::StepScope& scope) {
    if (!scope.found_inf) return;
    if (!steps_.front().is_cpu()) {
      found_infs_.assign(steps_.size(), *scope.found_inf);
      at::_foreach_sub_(steps_, found_infs_);
      found_infs_.clear();
      return;
    }
    const float found_inf = *scope.found_inf->const_data_ptr<float>();
    for (const at::Tensor& step : steps_) *step.mutable_data_ptr<float>() -= found_inf;
  }

  Decay decay_;
  double beta1_ = 0, beta2_ = 0, eps_, weight_decay_;
  bool amsgrad_;
  // Scratch, kept for its capacity.
  std::vector<at::Tensor> parameters_, gradients_, steps_, means_, squares_, largest_squares_, found_infs_;
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
