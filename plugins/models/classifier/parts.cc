#include <gantry/plugin.h>
#include <gantry/torch.h>

namespace {

/// A linear layer, after dropout.
class ClassifierHead final : public gantry::Module {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("DIM", 512).at_least(1).help("Features that it takes.");
    p.add<int64_t>("NUM_CLASSES", 10).at_least(1).help("Size of the logits.");
    p.add<double>("DROPOUT_RATE", 0.0).at_least(0).below(1).help("Share of the features that is left out in training.");
  }

  ClassifierHead(const gantry::Config& config, gantry::Context&)
      : dropout_(config.get<double>("DROPOUT_RATE")),
        fc_(register_module("fc", torch::nn::Linear(config.get<int64_t>("DIM"), config.get<int64_t>("NUM_CLASSES")))) {}

  at::Tensor forward(const at::Tensor& input) override {
    return fc_->forward(dropout_ > 0 ? torch::dropout(input, dropout_, is_training()) : input);
  }
  int64_t out_features() const override { return fc_->options.out_features(); }

 private:
  double dropout_;
  torch::nn::Linear fc_;
};

/// The mean over each image. Features that have been averaged already pass.
class GlobalAveragePooling final : public gantry::Module {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("DIM", 2).choices({"1", "2", "3"}).help("Dimensions that are averaged: those after the channels.");
  }
  GlobalAveragePooling(const gantry::Config& config, gantry::Context&) : dim_(config.get<int64_t>("DIM")) {}

  at::Tensor forward(const at::Tensor& input) override {
    if (input.dim() == 2) return input;
    if (input.dim() != dim_ + 2)
      throw gantry::Error(
          gantry::cat("GlobalAveragePooling with DIM ", dim_, " takes ", dim_ + 2, " dimensions, not ", input.sizes()));
    return input.flatten(2).mean(2);
  }

 private:
  int64_t dim_;
};

}  // namespace

GANTRY_MODULE(ClassifierHead, "ClassifierHead", "From features to logits: dropout and a linear layer.");
GANTRY_MODULE(GlobalAveragePooling, "GlobalAveragePooling", "The mean over each image, channel by channel.");
