#include <gantry/denoiser.h>
#include <gantry/torch.h>

#include <cmath>
#include <numeric>

namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
}

nn::GroupNorm norm(int64_t channels) {
  return nn::GroupNorm(nn::GroupNormOptions(std::gcd(int64_t{8}, channels), channels));
}

/// A branch that ends in zeros leaves its block the identity until it has learnt something.
void zero(nn::Conv2d& layer) {
  const torch::NoGradGuard no_grad;
  layer->weight.zero_();
  layer->bias.zero_();
}

/// x + conv2(silu(norm2(conv1(silu(norm1(x)))) scaled and shifted by the embedding)); the first x through a 1x1
/// convolution where the widths differ.
class ResidualBlock final : public nn::Module {
 public:
  ResidualBlock(int64_t in, int64_t out, int64_t embedding, double dropout)
      : dropout_(dropout),
        norm1_(norm(in)),
        conv1_(convolution(in, out, 3)),
        embed_(embedding, 2 * out),
        norm2_(norm(out)),
        conv2_(convolution(out, out, 3)) {
    register_module("norm1", norm1_);
    register_module("conv1", conv1_);
    register_module("embed", embed_);
    register_module("norm2", norm2_);
    register_module("conv2", conv2_);
    zero(conv2_);
    if (in != out) shortcut_ = register_module("shortcut", convolution(in, out, 1));
  }

  at::Tensor forward(const at::Tensor& input, const at::Tensor& embedding) {
    at::Tensor x = norm2_->forward(conv1_->forward(at::silu(norm1_->forward(input))));
    const auto affine = embed_->forward(embedding).unsqueeze(-1).unsqueeze(-1).chunk(2, 1);
    x = at::silu(at::addcmul(affine[1], x, affine[0] + 1));
    x = conv2_->forward(at::dropout(x, dropout_, is_training()));
    return x + (shortcut_ ? shortcut_->forward(input) : input);
  }

 private:
  double dropout_;
  nn::GroupNorm norm1_;
  nn::Conv2d conv1_;
  nn::Linear embed_;
  nn::GroupNorm norm2_;
  nn::Conv2d conv2_;
  nn::Conv2d shortcut_{nullptr};
};

/// x + projection of self-attention over all places of the image.
class AttentionBlock final : public nn::Module {
 public:
  explicit AttentionBlock(int64_t width)
      : heads_(std::max<int64_t>(1, std::gcd(width, int64_t{4}))),
        norm_(norm(width)),
        qkv_(convolution(width, 3 * width, 1)),
        projection_(convolution(width, width, 1)) {
    register_module("norm", norm_);
    register_module("qkv", qkv_);
    register_module("projection", projection_);
    zero(projection_);
  }

  at::Tensor forward(const at::Tensor& input) {
    const int64_t n = input.size(0), width = input.size(1), places = input.size(2) * input.size(3);
    // [3, N, heads, places, width of a head]
    const at::Tensor qkv =
        qkv_->forward(norm_->forward(input)).view({n, 3, heads_, width / heads_, places}).permute({1, 0, 2, 4, 3});
    const at::Tensor x = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
    return input + projection_->forward(x.transpose(2, 3).reshape(input.sizes()));
  }

 private:
  int64_t heads_;
  nn::GroupNorm norm_;
  nn::Conv2d qkv_, projection_;
};

/// "U-Net" (Ronneberger et al., 2015) with residual blocks that are told the time and the class, as in "Denoising
/// diffusion probabilistic models" (Ho et al., 2020).
class UNet final : public gantry::Module, public gantry::Denoiser {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("IN_CHANNELS", 1).at_least(1).help("Channels of the images.");
    p.add<std::vector<int64_t>>("WIDTHS", {24, 48, 64})
        .at_least(1)
        .not_empty()
        .help("Channels of each level; each level after the first has images half as large.");
    p.add<int64_t>("BLOCKS", 1).at_least(1).help("Residual blocks of each level, on the way down and on the way up.");
    p.add<int64_t>("NUM_CLASSES", 0).at_least(0).help("Classes that an image can be asked to be of; 0: it takes none.");
    p.add<bool>("ATTENTION", false).help("Self-attention at the lowest level.");
    p.add<double>("DROPOUT", 0.0).at_least(0).below(1).help("Share of the features that each residual block drops.");
  }

  UNet(const gantry::Config& config, gantry::Context&)
      : in_channels_(config.get<int64_t>("IN_CHANNELS")), num_classes_(config.get<int64_t>("NUM_CLASSES")) {
    const auto widths = config.get<std::vector<int64_t>>("WIDTHS");
    const auto blocks = config.get<int64_t>("BLOCKS");
    const auto dropout = config.get<double>("DROPOUT");
    const int64_t embedding = 4 * widths.front(), lowest = widths.back();

    time_embed_ = nn::Sequential(nn::Linear(2 * kFrequencies, embedding), nn::SiLU(), nn::Linear(embedding, embedding));
    register_module("time_embed", time_embed_);
    if (num_classes_ > 0) class_embed_ = register_module("class_embed", nn::Embedding(num_classes_ + 1, embedding));

    const auto residual_blocks = [&](const std::string& name, int64_t in, int64_t out, int64_t count) {
      nn::ModuleList list;
      std::vector<std::shared_ptr<ResidualBlock>> made;
      for (int64_t i = 0; i < count; ++i) {
        made.push_back(std::make_shared<ResidualBlock>(in, out, embedding, dropout));
        list->push_back(made.back());
      }
      register_module(name, list);
      return made;
    };
    conv_in_ = register_module("conv_in", convolution(in_channels_, widths.front(), 3));
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string number = std::to_string(i + 1);
      if (i > 0)
        downsample_.push_back(register_module("downsample" + number, convolution(widths[i - 1], widths[i], 3, 2)));
      down_.push_back(residual_blocks("down" + number, widths[i], widths[i], blocks));
    }
    middle_ = residual_blocks("middle", lowest, lowest, 2);
    if (config.get<bool>("ATTENTION"))
      attention_ = register_module("attention", std::make_shared<AttentionBlock>(lowest));
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string number = std::to_string(i + 1);
      // Before it is enlarged, where it costs a quarter.
      if (i > 0) upsample_.push_back(register_module("upsample" + number, convolution(widths[i], widths[i - 1], 3)));
      up_.push_back(residual_blocks("up" + number, 2 * widths[i], widths[i], blocks));
    }
    norm_out_ = register_module("norm_out", norm(widths.front()));
    conv_out_ = register_module("conv_out", convolution(widths.front(), in_channels_, 3));
    zero(conv_out_);
  }

  at::Tensor forward(const at::Tensor&) override {
    throw gantry::Error(
        "UNet needs a time beside its input: it can be the NETWORK of a Diffusion model, but no backbone");
  }

  at::Tensor denoise(const at::Tensor& noisy, const at::Tensor& time, const at::Tensor& classes) override {
    if (noisy.dim() != 4 || noisy.size(1) != in_channels_)
      throw gantry::Error(gantry::cat("UNet takes images [N, ", in_channels_,
                                      ", H, W] as IN_CHANNELS says; it was given ", noisy.sizes()));
    at::Tensor embedding = time_embed_->forward(time_features(time).to(noisy.scalar_type()));
    if (class_embed_) embedding = embedding + class_embed_->forward(classes);
    embedding = at::silu(embedding);

    std::vector<at::Tensor> skipped;
    at::Tensor x = conv_in_->forward(noisy);
    for (std::size_t i = 0; i < down_.size(); ++i) {
      if (i > 0) x = downsample_[i - 1]->forward(x);
      for (const auto& block : down_[i]) skipped.push_back(x = block->forward(x, embedding));
    }
    x = middle_[0]->forward(x, embedding);
    if (attention_) x = attention_->forward(x);
    x = middle_[1]->forward(x, embedding);
    for (std::size_t i = down_.size(); i-- > 0;) {
      for (const auto& block : up_[i]) {
        x = block->forward(at::cat({x, skipped.back()}, 1), embedding);
        skipped.pop_back();
      }
      // To the size of what it goes on with, which is odd where halving has rounded up.
      if (i > 0)
        x = at::upsample_nearest2d(upsample_[i - 1]->forward(x), {skipped.back().size(2), skipped.back().size(3)});
    }
    return conv_out_->forward(at::silu(norm_out_->forward(x)));
  }

  int64_t num_classes() const override { return num_classes_; }

 private:
  static constexpr int64_t kFrequencies = 32;

  /// Sines and cosines of the time at wavelengths from 1/160 to 60 times its range: the sinusoidal positions of
  /// transformers, of 1000 times the time.
  static at::Tensor time_features(const at::Tensor& time) {
    const at::Tensor frequencies =
        at::arange(kFrequencies, time.options().dtype(at::kFloat)).mul(-std::log(1e4) / kFrequencies).exp().mul(1000);
    const at::Tensor angles = time.to(at::kFloat).unsqueeze(1) * frequencies;
    return at::cat({angles.sin(), angles.cos()}, 1);
  }

  int64_t in_channels_, num_classes_;
  nn::Sequential time_embed_{nullptr};
  nn::Embedding class_embed_{nullptr};
  nn::Conv2d conv_in_{nullptr};
  std::vector<std::vector<std::shared_ptr<ResidualBlock>>> down_, up_;
  std::vector<std::shared_ptr<ResidualBlock>> middle_;
  std::vector<nn::Conv2d> downsample_, upsample_;
  std::shared_ptr<AttentionBlock> attention_;
  nn::GroupNorm norm_out_{nullptr};
  nn::Conv2d conv_out_{nullptr};
};

}  // namespace

GANTRY_PLUGIN("gantry-unet", GANTRY_VERSION);
GANTRY_MODULE(UNet, "UNet", "U-Net with time and class conditioning, for diffusion models.");
