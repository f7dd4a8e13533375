#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>
#include <gantry/optimizer.h>
#include <gantry/plugin.h>

namespace {

/// Stochastic gradient descent as PyTorch's torch.optim.SGD, on LibTorch's fused kernel:
///   g += WEIGHT_DECAY * p;  v = MOMENTUM * v + (1 - DAMPENING) * g (first step: v = g);
///   p -= lr * (NESTEROV ? g + MOMENTUM * v : v)
class Sgd final : public gantry::Optimizer {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE").at_least(0).help("Learning rate.");
    p.add<double>("MOMENTUM", 0).at_least(0).help("Share of the last update that is kept.");
    p.add<double>("DAMPENING", 0).help("Share of the gradient that momentum leaves out.");
    p.add<double>("WEIGHT_DECAY", 0).at_least(0).help("L2 penalty, added to the gradient.");
    p.add<bool>("NESTEROV", false).help("Nesterov's momentum; needs MOMENTUM > 0 and DAMPENING 0.");
  }

  Sgd(const gantry::Config& config, gantry::Context&)
      : Optimizer(config.get<double>("LEARNING_RATE")),
        momentum_(config.get<double>("MOMENTUM")),
        dampening_(config.get<double>("DAMPENING")),
        weight_decay_(config.get<double>("WEIGHT_DECAY")),
        nesterov_(config.get<bool>("NESTEROV")) {
    if (nesterov_ && (momentum_ <= 0 || dampening_ != 0))
      throw config.error("NESTEROV", "NESTEROV needs MOMENTUM > 0 and DAMPENING 0");
  }

  std::vector<std::string> state_names() const override {
    return momentum_ == 0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum_buffer"};
  }

  void step(std::span<gantry::Slot> slots, const gantry::StepScope& scope) override {
    for (std::size_t g = 0; g < groups().size(); ++g) {
      // A parameter's first step sets its momentum to the gradient, undamped; one call of the kernel does that
      // for all of its parameters or for none. Those that have begun go first, or they would be taken twice.
      step_some(slots, scope, static_cast<int64_t>(g), /*first=*/false);
      if (momentum_ != 0) step_some(slots, scope, static_cast<int64_t>(g), /*first=*/true);
    }
  }

 private:
  void step_some(std::span<gantry::Slot> slots, const gantry::StepScope& scope, int64_t group, bool first) {
    parameters_.clear();
    gradients_.clear();
    buffers_.clear();
    for (gantry::Slot& slot : slots) {
      if (slot.group != group || !slot.gradient.defined()) continue;
      if (momentum_ != 0) {
        if (first == slot.state[0].defined()) continue;
        if (first) slot.state[0] = at::zeros_like(slot.parameter);
        buffers_.push_back(slot.state[0]);
      }
      parameters_.push_back(slot.parameter);
      gradients_.push_back(slot.gradient);
    }
    if (parameters_.empty()) return;
    at::_fused_sgd_(parameters_, gradients_, buffers_, weight_decay_, momentum_, groups()[group].lr(), dampening_,
                    nesterov_, /*maximize=*/false, first, scope.grad_scale, scope.found_inf);
  }

  double momentum_, dampening_, weight_decay_;
  bool nesterov_;
  std::vector<at::Tensor> parameters_, gradients_, buffers_;  // scratch, kept for its capacity
};

}  // namespace

GANTRY_PLUGIN("gantry-sgd", GANTRY_VERSION);
GANTRY_OPTIMIZER(Sgd, "SGD", "Stochastic gradient descent with momentum, fused.");
