#include <gantry/torch.h>

namespace {

/// Backbone, linear head, loss: from "img" and "label" to "loss" and "logits".
class Classifier final : public gantry::Model {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("NUM_CLASSES").at_least(1).help("Size of the logits.");
    p.component<gantry::Module>("BACKBONE").help("From images to features.");
    p.component_or<gantry::Loss>("LOSS", "CrossEntropy").help("From logits and labels to the loss.");
    p.add<std::string>("INPUT_KEY", "img").help("What the batch calls the images.");
    p.add<std::string>("LABEL_KEY", "label").help("What the batch calls the labels, int64 in [0, NUM_CLASSES).");
  }

  Classifier(const gantry::Config& config, gantry::Context& context)
      : input_key_(config.get<std::string>("INPUT_KEY")), label_key_(config.get<std::string>("LABEL_KEY")) {
    const auto backbone = config.get<gantry::Config>("BACKBONE");
    backbone_ = context.build<gantry::Module>(backbone);
    const int64_t features = backbone_->out_features();
    if (features <= 0) throw config.error("BACKBONE", backbone.name() + " does not say how many features it puts out");
    head_ = torch::nn::Linear(features, config.get<int64_t>("NUM_CLASSES"));
    loss_ = context.build<gantry::Loss>(config.get<gantry::Config>("LOSS"));
    register_module("backbone", backbone_);
    register_module("head", head_);
    register_module("loss", loss_);
  }

  gantry::Outputs forward(const gantry::Batch& batch, gantry::Mode) override {
    const at::Tensor features = blocks.run(
        "backbone", [this](const at::Tensor& x) { return backbone_->forward(x); }, batch.tensor(input_key_));
    const at::Tensor logits = head_->forward(features);
    gantry::Outputs outputs;
    if (batch.has(label_key_)) outputs.set("loss", loss_->forward(logits, batch.tensor(label_key_)));
    outputs.set("logits", logits);
    return outputs;
  }

 private:
  std::string input_key_, label_key_;
  std::shared_ptr<gantry::Module> backbone_;
  torch::nn::Linear head_{nullptr};
  std::shared_ptr<gantry::Loss> loss_;
};

}  // namespace

GANTRY_PLUGIN("gantry-classifier", GANTRY_VERSION);
GANTRY_MODEL(Classifier, "Classifier", "A backbone with a linear head and a loss.");
