#include <gantry/torch.h>

namespace {

/// Flatten, then Linear and ReLU for each hidden size. The module names are those of the PyTorch Sequential
/// that holds the same layers.
class Mlp final : public gantry::Module {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("INPUT_SIZE").at_least(1).help("Elements of one flattened input.");
    p.add<std::vector<int64_t>>("HIDDEN", {256}).at_least(1).not_empty().help("Sizes of the layers.");
  }

  Mlp(const gantry::Config& config, gantry::Context&) : out_features_(config.get<int64_t>("INPUT_SIZE")) {
    layers_->push_back(torch::nn::Flatten());
    for (const int64_t size : config.get<std::vector<int64_t>>("HIDDEN")) {
      layers_->push_back(torch::nn::Linear(out_features_, size));
      layers_->push_back(torch::nn::ReLU());
      out_features_ = size;
    }
    register_module("layers", layers_);
  }

  at::Tensor forward(const at::Tensor& input) override { return layers_->forward(input); }
  int64_t out_features() const override { return out_features_; }

 private:
  int64_t out_features_;
  torch::nn::Sequential layers_;
};

}  // namespace

GANTRY_PLUGIN("gantry-mlp", GANTRY_VERSION);
GANTRY_MODULE(Mlp, "Mlp", "Backbone of linear layers with ReLU.");
