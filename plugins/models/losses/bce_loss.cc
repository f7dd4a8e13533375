#include <gantry/torch.h>

#include "same_shape.h"

namespace {

class BceLoss final : public gantry::Loss {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<bool>("FROM_LOGITS", true)
        .help("Whether predictions are logits, of which the sigmoid is taken; else they are probabilities.");
    p.optional<std::vector<double>>("POS_WEIGHT")
        .at_least(0)
        .not_empty()
        .help("How much targets of 1 count beside those of 0: one number, or one for each of the last dimension.");
  }

  BceLoss(const gantry::Config& config, gantry::Context&)
      : config_(config), from_logits_(config.get<bool>("FROM_LOGITS")) {
    if (!config.has("POS_WEIGHT")) return;
    if (!from_logits_) {
      throw config.error("POS_WEIGHT", "counts with logits alone: leave it out, or give logits and FROM_LOGITS: true");
    }
    positive_weight_ = torch::tensor(config.get<std::vector<double>>("POS_WEIGHT"), torch::kDouble);
  }

  at::Tensor forward(const at::Tensor& prediction, const at::Tensor& given) override {
    const at::Tensor target = target_like(prediction, given, "BCELoss");
    if (!from_logits_) return at::binary_cross_entropy(prediction, target);
    if (positive_weight_.defined()) fit_weight(prediction);
    return at::binary_cross_entropy_with_logits(prediction, target, /*weight=*/{}, positive_weight_);
  }

 private:
  void fit_weight(const at::Tensor& prediction) {
    const int64_t last = prediction.dim() == 0 ? 1 : prediction.size(-1);
    if (positive_weight_.numel() != 1 && positive_weight_.numel() != last) {
      throw config_.error("POS_WEIGHT", gantry::cat("has ", positive_weight_.numel(),
                                                    " numbers, but the prediction's last dimension has ", last));
    }
    positive_weight_ = positive_weight_.to(prediction.options());  // itself from the second time on
  }

  const gantry::Config config_;
  const bool from_logits_;
  at::Tensor positive_weight_;
};

}  // namespace

GANTRY_LOSS(BceLoss, "BCELoss", "Binary cross-entropy of logits or probabilities, the mean over all of them.");
