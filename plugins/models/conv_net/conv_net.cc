#include <gantry/torch.h>

namespace {

/// For each width: 3x3 convolution, batch normalisation, ReLU, 2x2 maximum. Then the features are flattened.
class ConvNet final : public gantry::Module {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("IN_CHANNELS", 1).at_least(1).help("Channels of the images.");
    p.add<std::vector<int64_t>>("IMAGE_SIZE", {28, 28}).at_least(1).help("Height and width of the images.");
    p.add<std::vector<int64_t>>("WIDTHS", {16, 32}).at_least(1).not_empty().help("Channels of each block.");
  }

  ConvNet(const gantry::Config& config, gantry::Context&) {
    auto size = config.get<std::vector<int64_t>>("IMAGE_SIZE");
    if (size.size() != 2) throw config.error("IMAGE_SIZE", "IMAGE_SIZE is a height and a width: [28, 28]");
    int64_t channels = config.get<int64_t>("IN_CHANNELS");
    const auto widths = config.get<std::vector<int64_t>>("WIDTHS");
    for (const int64_t width : widths) {
      layers_->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, width, 3).padding(1)));
      layers_->push_back(torch::nn::BatchNorm2d(width));
      layers_->push_back(torch::nn::ReLU());
      layers_->push_back(torch::nn::MaxPool2d(2));
      channels = width;
      size[0] /= 2;
      size[1] /= 2;
    }
    if (size[0] == 0 || size[1] == 0)
      throw config.error("IMAGE_SIZE", "IMAGE_SIZE is too small to be halved " + std::to_string(widths.size()) +
                                           " times, once for each of WIDTHS");
    layers_->push_back(torch::nn::Flatten());
    out_features_ = channels * size[0] * size[1];
    register_module("layers", layers_);
  }

  at::Tensor forward(const at::Tensor& input) override { return layers_->forward(input); }
  int64_t out_features() const override { return out_features_; }

 private:
  int64_t out_features_ = 0;
  torch::nn::Sequential layers_;
};

}  // namespace

GANTRY_PLUGIN("gantry-conv-net", GANTRY_VERSION);
GANTRY_MODULE(ConvNet, "ConvNet", "Backbone of convolutions with batch normalisation.");
