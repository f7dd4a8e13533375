#include <gantry/torch.h>

namespace {

/// Backbone, linear head, loss: from an input and a target of numbers to "loss" and "prediction".
class Regressor final : public gantry::Model {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("OUT_FEATURES", 1).at_least(1).help("How many numbers are predicted for a sample.");
    p.component<gantry::Module>("BACKBONE").help("From inputs to features.");
    p.component_or<gantry::Loss>("LOSS", "MSELoss").help("From predictions and targets to the loss.");
    p.add<std::string>("INPUT_KEY", "img").help("What the batch calls the inputs.");
    p.add<std::string>("TARGET_KEY", "target")
        .help("What the batch calls the targets, [N, OUT_FEATURES], or [N] where that is 1.");
  }

  Regressor(const gantry::Config& config, gantry::Context& context)
      : input_key_(config.get<std::string>("INPUT_KEY")), target_key_(config.get<std::string>("TARGET_KEY")) {
    const auto backbone = config.get<gantry::Config>("BACKBONE");
    backbone_ = context.build<gantry::Module>(backbone);
    const int64_t features = backbone_->out_features();
    if (features <= 0) throw config.error("BACKBONE", backbone.name() + " does not say how many features it puts out");
    head_ = torch::nn::Linear(features, config.get<int64_t>("OUT_FEATURES"));
    loss_ = context.build<gantry::Loss>(config.get<gantry::Config>("LOSS"));
    register_module("backbone", backbone_);
    register_module("head", head_);
    register_module("loss", loss_);
  }

  gantry::Outputs forward(const gantry::Batch& batch, gantry::Mode) override {
    const at::Tensor features = blocks.run(
        "backbone", [this](const at::Tensor& x) { return backbone_->forward(x); }, batch.tensor(input_key_));
    const at::Tensor prediction = head_->forward(features);
    gantry::Outputs outputs;
    if (batch.has(target_key_)) {
      const at::Tensor& target = batch.tensor(target_key_);
      const bool one_each = target.dim() + 1 == prediction.dim() && prediction.size(-1) == 1;
      outputs.set("loss", loss_->forward(one_each ? prediction.squeeze(-1) : prediction, target));
    }
    outputs.set("prediction", prediction);
    return outputs;
  }

 private:
  std::string input_key_, target_key_;
  std::shared_ptr<gantry::Module> backbone_;
  torch::nn::Linear head_{nullptr};
  std::shared_ptr<gantry::Loss> loss_;
};

}  // namespace

GANTRY_PLUGIN("gantry-regressor", GANTRY_VERSION);
GANTRY_MODEL(Regressor, "Regressor", "A backbone with a linear head that predicts numbers, and a loss.");
