#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>
#include <gantry/optimizer.h>
#include <gantry/plugin.h>
#include <gantry/slot_batches.h>

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
      : Optimizer(config),
        has_momentum_(config.get<double>("MOMENTUM") != 0),
        dampening_(config.get<double>("DAMPENING")),
        nesterov_(config.get<bool>("NESTEROV")) {
    if (nesterov_ && (!has_momentum_ || dampening_ != 0))
      throw config.error("NESTEROV", "needs MOMENTUM > 0 and DAMPENING 0");
    if (has_momentum_) {
      for (gantry::ParamGroup& group : groups()) group.set_momentum(config.get<double>("MOMENTUM"));
    }
  }

  std::vector<std::string> state_names() const override {
    return has_momentum_ ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
  }

  void step(std::span<gantry::Slot> slots, const gantry::StepScope& scope) override {
    const auto start = [this](gantry::Slot& slot) {
      if (momentum(slot.group) != 0) slot.state[0] = at::zeros_like(slot.parameter);
    };
    batches_.for_each(slots, start, [&](gantry::SlotBatch& batch) {
      const gantry::ParamGroup& group = groups()[batch.group];
      // A schedule may take the momentum away for a while; the kernel then wants no buffers.
      const double kept = momentum(batch.group);
      at::_fused_sgd_(batch.parameters, batch.gradients, kept == 0 ? at::TensorList() : at::TensorList(batch.state[0]),
                      group.weight_decay(), kept, group.lr(), dampening_, nesterov_ && kept != 0, /*maximize=*/false,
                      /*is_first_step=*/batch.first, scope.grad_scale, scope.found_inf);
    });
  }

 private:
  double momentum(int64_t group) const { return has_momentum_ ? groups()[group].momentum() : 0; }

  bool has_momentum_;
  double dampening_;
  bool nesterov_;
  gantry::SlotBatches batches_;
};

}  // namespace

GANTRY_PLUGIN("gantry-sgd", GANTRY_VERSION);
GANTRY_OPTIMIZER(Sgd, "SGD", "Stochastic gradient descent with momentum, fused.");
