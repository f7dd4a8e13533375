#include <gantry/denoiser.h>
#include <gantry/torch.h>

#include <algorithm>
#include <cmath>

#include "noise_path.h"

namespace {

using diffusion::Level;
using diffusion::NoisePath;

/// One number for each image, to be multiplied with images.
at::Tensor per_image(const at::Tensor& values, const at::Tensor& images) {
  return values.to(images.scalar_type()).view({-1, 1, 1, 1});
}

/// "Denoising diffusion probabilistic models" (Ho et al., 2020) and "Flow matching for generative modeling" (Lipman et
/// al., 2022), with classifier-free guidance (Ho and Salimans, 2022).
class Diffusion final : public gantry::Model, public gantry::Generator {
 public:
  static void declare(gantry::Parameters& p) {
    p.component<gantry::Module>("NETWORK").help("What looks at noisy images; it must be a denoiser, such as UNet.");
    p.add<std::string>("PREDICTION", "flow")
        .choices({"flow", "noise"})
        .help("What it learns to see in them: the direction from data to noise (flow matching), or the noise (DDPM).");
    p.add<int64_t>("TIMESTEPS", 1000).at_least(1).help("Of PREDICTION noise: how often noise is added.");
    p.add<std::string>("SCHEDULE", "linear")
        .choices({"linear", "cosine"})
        .help("Of PREDICTION noise: how much is added each time.");
    p.add<double>("CLASS_DROP", 0.1)
        .at_least(0)
        .at_most(1)
        .help("Share of the training images whose class is not told: guidance needs some.");
    p.add<bool>("CLIP", true).help("While sampling, keep what is predicted to be the clean image in [-1, 1].");
    p.add<std::string>("INPUT_KEY", "img").help("What the batch calls the images, floating-point numbers in [-1, 1].");
    p.add<std::string>("LABEL_KEY", "label")
        .help("What the batch calls the labels, int64; read if the network takes classes.");
  }

  Diffusion(const gantry::Config& config, gantry::Context& context)
      : flow_(config.get<std::string>("PREDICTION") == "flow"),
        clip_(config.get<bool>("CLIP")),
        class_drop_(config.get<double>("CLASS_DROP")),
        input_key_(config.get<std::string>("INPUT_KEY")),
        label_key_(config.get<std::string>("LABEL_KEY")),
        path_(flow_ ? NoisePath::straight()
                    : NoisePath::variance_preserving(config.get<int64_t>("TIMESTEPS"),
                                                     config.get<std::string>("SCHEDULE"))) {
    const auto network = config.get<gantry::Config>("NETWORK");
    network_ = context.build<gantry::Module>(network);
    denoiser_ = dynamic_cast<gantry::Denoiser*>(network_.get());
    if (denoiser_ == nullptr)
      throw config.error("NETWORK", "names " + network.name() +
                                        ", which is no denoiser: it cannot be told how noisy an image is. UNet can");
    register_module("network", network_);
  }

  gantry::Outputs forward(const gantry::Batch& batch, gantry::Mode mode) override {
    const at::Tensor& clean = images(batch);
    const int64_t n = clean.size(0);
    const auto options = clean.options().dtype(at::kFloat);
    // One draw for the batch, spread evenly: each time is as likely as any other, and the mean over a batch varies less
    // than with a draw for each image ("Variational diffusion models", Kingma et al., 2021).
    const at::Tensor u = (at::arange(n, options) / n + at::rand({1}, options)).frac_();
    const NoisePath::Levels level = path_.at(u);
    const at::Tensor noise = at::randn_like(clean);
    const at::Tensor noisy = per_image(level.signal, clean) * clean + per_image(level.noise, clean) * noise;
    const at::Tensor classes = told_classes(batch, mode);
    const at::Tensor prediction = blocks.run(
        "network", [&](const at::Tensor& x) { return denoiser_->denoise(x, level.time, classes); }, noisy);
    if (probes->wanted() && mode == gantry::Mode::train) show(clean, noisy, prediction, level);
    return {{"loss", at::mse_loss(prediction, flow_ ? noise - clean : noise)}};
  }

  at::Tensor generate(const at::Tensor& noise, const at::Tensor& classes,
                      const gantry::SampleOptions& options) override {
    const std::vector<std::string> offered = samplers();
    const std::string sampler = options.sampler.empty() ? offered.front() : options.sampler;
    if (std::find(offered.begin(), offered.end(), sampler) == offered.end())
      throw gantry::Error("there is no sampler '" + sampler + "'; there is: " + gantry::join(offered, ", "));
    const std::vector<Level> levels = path_.back(options.steps);
    at::Tensor x = noise;
    for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
      const Level& from = levels[i];
      const Level& to = levels[i + 1];
      const at::Tensor clean = clean_image(x, from, guided(x, from.time, classes, options.guidance));
      const at::Tensor e = (x - from.signal * clean) / from.noise;
      // Of the noise that is to be left, so much is drawn anew.
      const double fresh =
          sampler == "ddpm" ? to.noise / from.noise * std::sqrt(1 - from.signal * from.signal / (to.signal * to.signal))
                            : 0.0;
      x = to.signal * clean + std::sqrt(to.noise * to.noise - fresh * fresh) * e;
      if (fresh > 0) x += fresh * at::randn_like(x);
    }
    return x;
  }

  int64_t num_classes() const override { return denoiser_->num_classes(); }
  std::vector<std::string> samplers() const override {
    return flow_ ? std::vector<std::string>{"euler"} : std::vector<std::string>{"ddim", "ddpm"};
  }
  std::vector<int64_t> sample_shape(const gantry::Batch& batch) const override {
    return images(batch).sizes().slice(1).vec();
  }

 private:
  const at::Tensor& images(const gantry::Batch& batch) const {
    const at::Tensor& images = batch.tensor(input_key_);
    if (!images.is_floating_point())
      throw gantry::Error(gantry::cat("the images '", input_key_, "' are ", images.scalar_type(),
                                      "; they must be floating-point numbers in [-1, 1]: add {NAME: Normalize, "
                                      "MEAN: [0.5], STD: [0.5]} to TRANSFORMS, with a number for each channel"));
    if (images.dim() != 4)
      throw gantry::Error(gantry::cat("the images '", input_key_, "' must be [N, C, H, W]; they are ", images.sizes()));
    return images;
  }

  /// With some of them forgotten in training; undefined where the network takes none.
  at::Tensor told_classes(const gantry::Batch& batch, gantry::Mode mode) const {
    const int64_t none = denoiser_->num_classes();
    if (none == 0) return {};
    const at::Tensor labels = batch.tensor(label_key_).to(at::kLong);
    if (labels.dim() != 1)
      throw gantry::Error(gantry::cat("the labels '", label_key_, "' must be [N]; they are ", labels.sizes()));
    check_range(labels, none);
    if (mode != gantry::Mode::train || class_drop_ == 0) return labels;
    const at::Tensor forgotten = at::rand({labels.size(0)}, labels.options().dtype(at::kFloat)) < class_drop_;
    return labels.masked_fill(forgotten, none);
  }

  /// On the CPU alone: elsewhere it would mean waiting for the device.
  void check_range(const at::Tensor& labels, int64_t num_classes) const {
    if (!labels.is_cpu()) return;
    const at::Tensor whole = labels.contiguous();
    const auto* label = whole.const_data_ptr<int64_t>();
    const auto* bad = std::find_if(label, label + whole.numel(), [&](int64_t l) { return l < 0 || l >= num_classes; });
    if (bad != label + whole.numel())
      throw gantry::Error(gantry::cat("a label '", label_key_, "' is ", *bad, "; with NUM_CLASSES ", num_classes,
                                      " of NETWORK labels are 0 to ", num_classes - 1));
  }

  at::Tensor guided(const at::Tensor& x, double time, const at::Tensor& classes, double guidance) {
    const int64_t n = x.size(0);
    const auto options = x.options().dtype(at::kFloat);
    if (!classes.defined() || guidance == 1) return denoiser_->denoise(x, at::full({n}, time, options), classes);
    const at::Tensor both = at::cat({classes, at::full_like(classes, denoiser_->num_classes())});
    const auto predicted = denoiser_->denoise(at::cat({x, x}), at::full({2 * n}, time, options), both).chunk(2);
    return at::lerp(predicted[1], predicted[0], guidance);
  }

  /// The image that the network takes `noisy` to come from.
  at::Tensor clean_image(const at::Tensor& noisy, const Level& level, const at::Tensor& prediction) const {
    const at::Tensor clean =
        flow_ ? noisy - level.noise * prediction : (noisy - level.noise * prediction) / level.signal;
    return clip_ ? clean.clamp(-1, 1) : clean;
  }

  void show(const at::Tensor& clean, const at::Tensor& noisy, const at::Tensor& prediction,
            const NoisePath::Levels& level) const {
    const int64_t channels = clean.size(1), shown = std::min<int64_t>(8, clean.size(0));
    if (channels != 1 && channels != 3) return;
    const at::NoGradGuard no_grad;
    // Of the whole batch, in which the time runs evenly from one end to the other.
    const at::Tensor chosen = at::arange(shown, at::kLong).mul(clean.size(0)).floor_divide(shown).to(clean.device());
    const at::Tensor time = level.time.index_select(0, chosen).cpu();
    at::Tensor x = noisy.index_select(0, chosen), predicted = prediction.detach().index_select(0, chosen);
    predicted = x - per_image(level.noise.index_select(0, chosen), x) * predicted;
    if (!flow_) predicted = predicted / per_image(level.signal.index_select(0, chosen), x);
    std::vector<std::string> labels;
    for (int64_t i = 0; i < shown; ++i) labels.push_back("t " + gantry::short_number(time[i].item<double>()));
    const auto picture = [](const at::Tensor& images) { return ((images + 1) / 2).clamp(0, 1); };
    probes->image("clean", picture(clean.index_select(0, chosen)), labels);
    probes->image("noisy", picture(x), labels);
    probes->image("predicted", picture(predicted), labels);
  }

  bool flow_, clip_;
  double class_drop_;
  std::string input_key_, label_key_;
  NoisePath path_;
  std::shared_ptr<gantry::Module> network_;
  gantry::Denoiser* denoiser_ = nullptr;  // the same object
};

}  // namespace

GANTRY_PLUGIN("gantry-diffusion", GANTRY_VERSION);
GANTRY_MODEL(Diffusion, "Diffusion", "Makes images from noise: flow matching or DDPM, with classes.");
