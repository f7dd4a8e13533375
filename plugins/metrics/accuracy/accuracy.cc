#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/metric.h"

namespace gantry {

namespace {

class AccuracyMetric final : public Metric {
 public:
  static void declare(Parameters& p) {
    p.add<std::vector<int64_t>>("TOPK", {1})
        .at_least(1)
        .not_empty()
        .help("For each K: how often the target is among the K classes of the highest scores, reported as acc@K.");
    p.add<std::vector<std::string>>("KEYS", {"logits", "label"})
        .not_empty()
        .help(
            "Two names of the model's outputs or the batch: scores [N, classes, ...] and targets [N, ...]. name.2 is "
            "the "
            "third tensor of a list.");
    p.add<std::string>("PREFIX", "").help("Begins the name of each figure, to tell several such metrics apart.");
  }

  AccuracyMetric(const Config& config, Context& context)
      : config_(config), prefix_(config.get<std::string>("PREFIX")), topk_(config.get<std::vector<int64_t>>("TOPK")) {
    const auto keys = config.get<std::vector<std::string>>("KEYS");
    if (keys.size() != 2) {
      throw config.error("KEYS", cat("names ", keys.size(), keys.size() == 1 ? " tensor" : " tensors",
                                     "; it should name two, scores and targets"));
    }
    scores_key_ = keys[0];
    target_key_ = keys[1];
    const auto counter = at::TensorOptions(at::kLong).device(context.device());
    total_ = at::zeros({}, counter);
    for (std::size_t i = 0; i < topk_.size(); ++i) correct_.push_back(at::zeros({}, counter));
  }

  void reset() override {
    total_.zero_();
    for (at::Tensor& count : correct_) count.zero_();
  }

  void update(const Batch& batch, const Outputs& outputs) override {
    const c10::NoGradGuard no_grad;
    const at::Tensor& scores = find_tensor(batch, outputs, scores_key_);
    const at::Tensor& target = find_tensor(batch, outputs, target_key_);
    check(scores, target);
    for (std::size_t i = 0; i < topk_.size(); ++i) {
      const at::Tensor hits =
          topk_[i] == 1 ? scores.argmax(1).eq(target) : std::get<1>(scores.topk(topk_[i], 1)).eq(target.unsqueeze(1));
      correct_[i].add_(hits.sum().to(total_.device()));
    }
    total_.add_(target.numel());
  }

  std::vector<at::Tensor> sums() override {
    std::vector<at::Tensor> all = correct_;
    all.push_back(total_);
    return all;
  }

  void compute(Scalars& result) override {
    const auto total = static_cast<double>(total_.item<int64_t>());
    for (std::size_t i = 0; i < topk_.size(); ++i) {
      const auto correct = static_cast<double>(correct_[i].item<int64_t>());
      result.set(cat(prefix_, "acc@", topk_[i]),
                 total > 0 ? correct / total : std::numeric_limits<double>::quiet_NaN());
    }
  }

 private:
  void check(const at::Tensor& scores, const at::Tensor& target) const {
    if (!c10::isIntegralType(target.scalar_type(), false)) {
      throw config_.error("KEYS", cat("names '", target_key_,
                                      "' as targets, whose values are no class numbers: they are "
                                      "no integers"));
    }
    if (!scores.is_floating_point()) {
      throw config_.error("KEYS",
                          cat("names '", scores_key_, "' as scores, whose values are no floating-point numbers"));
    }
    bool fits = scores.dim() == target.dim() + 1 && target.dim() >= 1;
    for (int64_t d = 0; fits && d < target.dim(); ++d) fits = target.size(d) == scores.size(d == 0 ? 0 : d + 1);
    if (!fits) {
      throw config_.error(
          "KEYS", cat("names '", scores_key_, "' of shape ", scores.sizes(), " and '", target_key_, "' of shape ",
                      target.sizes(), ", which do not fit together: they should be [N, classes, ...] and [N, ...]"));
    }
    for (const int64_t k : topk_) {
      if (k <= scores.size(1)) continue;
      throw config_.error("TOPK",
                          cat("asks for the best ", k, " classes, but '", scores_key_, "' has only ", scores.size(1)));
    }
  }

  const Config config_;
  const std::string prefix_;
  const std::vector<int64_t> topk_;
  std::string scores_key_, target_key_;
  std::vector<at::Tensor> correct_;  // one per K: 0-dim, on the run's device
  at::Tensor total_;
};

}  // namespace

GANTRY_PLUGIN("gantry-accuracy", GANTRY_VERSION);
GANTRY_METRIC(AccuracyMetric, "AccuracyMetric", "The share of samples whose class is among the K best scores.");

}  // namespace gantry
