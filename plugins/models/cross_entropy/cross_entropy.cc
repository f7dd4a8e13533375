#include <gantry/torch.h>

namespace {

class CrossEntropy final : public gantry::Loss {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LABEL_SMOOTHING", 0)
        .at_least(0)
        .below(1)
        .help("Share of each target that is spread evenly over all classes.");
    p.optional<std::vector<double>>("WEIGHT").at_least(0).not_empty().help(
        "How much each class counts, one number per class; default: all the same.");
    p.add<int64_t>("IGNORE_INDEX", -100).help("Targets of this value do not count.");
  }

  CrossEntropy(const gantry::Config& config, gantry::Context&)
      : config_(config),
        label_smoothing_(config.get<double>("LABEL_SMOOTHING")),
        ignore_index_(config.get<int64_t>("IGNORE_INDEX")) {
    if (config.has("WEIGHT")) weight_ = torch::tensor(config.get<std::vector<double>>("WEIGHT"), torch::kDouble);
  }

  at::Tensor forward(const at::Tensor& prediction, const at::Tensor& target) override {
    if (weight_.defined()) fit_weight(prediction);
    return at::cross_entropy_loss(prediction, target, weight_, at::Reduction::Mean, ignore_index_, label_smoothing_);
  }

 private:
  // No buffer: it comes from the configuration, not from training, so checkpoints do without.
  void fit_weight(const at::Tensor& prediction) {
    const int64_t classes = prediction.dim() < 2 ? 1 : prediction.size(1);
    if (weight_.numel() != classes) {
      throw config_.error("WEIGHT", gantry::cat("has ", weight_.numel(), " numbers, but the model tells ", classes,
                                                " classes apart; each needs one"));
    }
    weight_ = weight_.to(prediction.options());  // itself from the second time on
  }

  const gantry::Config config_;
  const double label_smoothing_;
  const int64_t ignore_index_;
  at::Tensor weight_;
};

}  // namespace

GANTRY_PLUGIN("gantry-cross-entropy", GANTRY_VERSION);
GANTRY_LOSS(CrossEntropy, "CrossEntropy", "Softmax cross-entropy with class indices, the mean over the batch.");
