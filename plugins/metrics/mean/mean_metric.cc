#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <optional>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/metric.h"

namespace gantry {

namespace {

class MeanMetric final : public Metric {
 public:
  static void declare(Parameters& p) {
    p.add<std::vector<std::string>>("KEYS").not_empty().help(
        "Names of the model's outputs or the batch: a number for the whole batch, or a tensor [N, ...]. name.2 is the "
        "third tensor of a list.");
    p.add<std::string>("PREFIX", "mean_").help("Begins the name of each figure, which is PREFIX and the key.");
  }

  MeanMetric(const Config& config, Context& context)
      : config_(config),
        keys_(config.get<std::vector<std::string>>("KEYS")),
        prefix_(config.get<std::string>("PREFIX")) {
    const auto options = at::TensorOptions(at::kDouble).device(context.device());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      sums_.push_back(at::zeros({}, options));
      weights_.push_back(at::zeros({}, options));
    }
  }

  void reset() override {
    for (at::Tensor& sum : sums_) sum.zero_();
    for (at::Tensor& weight : weights_) weight.zero_();
  }

  void update(const Batch& batch, const Outputs& outputs) override {
    const c10::NoGradGuard no_grad;
    const double batch_weight = weight_of(outputs, batch.weight);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (const std::optional<double> number = find_number(batch, outputs, keys_[i])) {
        if (batch_weight == 0) continue;  // a mean over nothing is no number
        sums_[i].add_(*number * batch_weight);
        weights_[i].add_(batch_weight);
        continue;
      }
      const at::Tensor& value = find_tensor(batch, outputs, keys_[i]);
      if (value.is_complex()) throw config_.error("KEYS", cat("names '", keys_[i], "', which holds complex numbers"));
      const at::Tensor numbers = value.to(sums_[i].options());
      if (value.dim() == 0) {
        if (batch_weight == 0) continue;
        sums_[i].add_(numbers, batch_weight);
        weights_[i].add_(batch_weight);
      } else if (value.numel() > 0) {
        sums_[i].add_(numbers.dim() == 1 ? numbers.sum() : numbers.flatten(1).mean(1).sum());
        weights_[i].add_(static_cast<double>(value.size(0)));
      }
    }
  }

  std::vector<at::Tensor> sums() override {
    std::vector<at::Tensor> all = sums_;
    all.insert(all.end(), weights_.begin(), weights_.end());
    return all;
  }

  void compute(Scalars& result) override {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const double weight = weights_[i].item<double>();
      result.set(prefix_ + keys_[i],
                 weight > 0 ? sums_[i].item<double>() / weight : std::numeric_limits<double>::quiet_NaN());
    }
  }

 private:
  /// What a mean over the batch counts: what the model says, else its samples.
  static double weight_of(const Outputs& outputs, double samples) {
    const Value* weight = outputs.find("weight");
    return weight == nullptr ? samples : as_number(*weight).value_or(samples);
  }

  static std::optional<double> find_number(const Batch& batch, const Outputs& outputs, const std::string& key) {
    const Value* value = outputs.has(key) ? outputs.find(key) : batch.find(key);
    return value == nullptr ? std::nullopt : as_number(*value);
  }

  static std::optional<double> as_number(const Value& value) {
    if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* number = std::get_if<double>(&value)) return *number;
    return std::nullopt;
  }

  const Config config_;
  const std::vector<std::string> keys_;
  const std::string prefix_;
  std::vector<at::Tensor> sums_, weights_;  // one of each per key: 0-dim, on the run's device
};

}  // namespace

GANTRY_PLUGIN("gantry-mean-metric", GANTRY_VERSION);
GANTRY_METRIC(MeanMetric, "MeanMetric", "The mean over all samples of anything that the model puts out.");

}  // namespace gantry
