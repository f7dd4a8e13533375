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
    torch::nn::Sequential layers;
    layers->push_back(torch::nn::Flatten());
    for (const int64_t size : config.get<std::vector<int64_t>>("HIDDEN")) {
      linears_.emplace_back(out_features_, size);
      layers->push_back(linears_.back());
      layers->push_back(torch::nn::ReLU());
      out_features_ = size;
    }
    register_module("layers", layers);
  }

  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = input.flatten(1);
    for (torch::nn::Linear& linear : linears_) x = linear->forward(x).relu_();
    return x;
  }
  int64_t out_features() const override { return out_features_; }

 private:
  int64_t out_features_;
  std::vector<torch::nn::Linear> linears_;  // called directly: a Sequential's calls are type-erased and allocate
};

}  // namespace

GANTRY_PLUGIN("gantry-mlp", GANTRY_VERSION);
GANTRY_MODULE(Mlp, "Mlp", "Backbone of linear layers with ReLU.");
