#include <gantry/torch.h>

namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// relu(bn2(conv2(relu(bn1(conv1(x))))) + x), the second x through a 1x1 convolution where the shapes differ.
class BasicBlock final : public nn::Module {
 public:
  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1_(convolution(in, out, 3, stride)), bn1_(out), conv2_(convolution(out, out, 3, 1)), bn2_(out) {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    register_module("conv2", conv2_);
    register_module("bn2", bn2_);
    if (stride == 1 && in == out) return;
    downsample_ = nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out));
    register_module("downsample", downsample_);
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = bn1_->forward(conv1_->forward(input)).relu_();
    x = bn2_->forward(conv2_->forward(x));
    x += downsample_ ? downsample_->forward(input) : input;
    return x.relu_();
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Sequential downsample_{nullptr};
};

/// "Deep residual learning for image recognition" (He et al., 2015), the networks of basic blocks. The names in the
/// module tree are torchvision's: state dicts fit both.
class ResNet final : public gantry::Module {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("DEPTH", 18).choices({"18", "34"}).help("Layers with weights, as the networks are called.");
    p.add<std::string>("STEM", "imagenet")
        .choices({"imagenet", "cifar"})
        .help("How the network begins: it makes images four times smaller each way, or keeps the size of small ones.");
    p.add<int64_t>("IN_CHANNELS", 3).at_least(1).help("Channels of the images.");
    p.add<int64_t>("WIDTH", 64).at_least(1).help("Channels of the first stage; each further one has twice as many.");
    p.foreign("KERNEL_SIZE", {"7"}, "STEM imagenet begins with a 7x7 convolution, STEM cifar with a 3x3 one");
    p.foreign("PRETRAINED", {"false"}, "MODEL.PRETRAINED_MODEL names weights to start from");
    p.foreign("USE_RELU", {"true"}, "STEM decides how the network begins");
    p.foreign("USE_MAXPOOL", {"true"}, "STEM cifar has no maximum");
    p.foreign("FIRST_CONV_STRIDE", {"2"}, "STEM cifar keeps the size of the image");
    p.foreign("FIRST_MAX_POOL_STRIDE", {"2"}, "STEM cifar keeps the size of the image");
  }

  ResNet(const gantry::Config& config, gantry::Context&) : small_images_(config.get<std::string>("STEM") == "cifar") {
    constexpr int64_t kBlocks[2][4] = {{2, 2, 2, 2}, {3, 4, 6, 3}};
    const int64_t* blocks = kBlocks[config.get<int64_t>("DEPTH") == 34 ? 1 : 0];
    const auto in_channels = config.get<int64_t>("IN_CHANNELS");
    int64_t width = config.get<int64_t>("WIDTH");
    conv1_ = small_images_ ? convolution(in_channels, width, 3, 1) : convolution(in_channels, width, 7, 2);
    bn1_ = nn::BatchNorm2d(width);
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    out_features_ = width;
    for (int stage = 0; stage < 4; ++stage) {
      nn::Sequential layer;
      for (int64_t block = 0; block < blocks[stage]; ++block) {
        layer->push_back(std::make_shared<BasicBlock>(out_features_, width, stage > 0 && block == 0 ? 2 : 1));
        out_features_ = width;
      }
      layers_.push_back(register_module("layer" + std::to_string(stage + 1), layer));
      width *= 2;
    }
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->as<nn::Conv2d>())
        nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }

  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = bn1_->forward(conv1_->forward(input)).relu_();
    if (!small_images_) x = at::max_pool2d(x, 3, 2, 1);
    for (nn::Sequential& layer : layers_) x = layer->forward(x);
    return at::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
  }
  int64_t out_features() const override { return out_features_; }

 private:
  bool small_images_;
  int64_t out_features_;
  nn::Conv2d conv1_{nullptr};
  nn::BatchNorm2d bn1_{nullptr};
  std::vector<nn::Sequential> layers_;
};

}  // namespace

GANTRY_PLUGIN("gantry-resnet", GANTRY_VERSION);
GANTRY_MODULE(ResNet, "ResNet", "Residual network of basic blocks with torchvision's parameter names.");
