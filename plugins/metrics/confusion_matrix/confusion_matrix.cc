#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/metric.h"

namespace gantry {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class ConfusionMatrixMetric final : public Metric {
 public:
  static void declare(Parameters& p) {
    p.add<int64_t>("NUM_CLASSES").at_least(1).at_most(10000).help("How many classes there are.");
    p.add<std::vector<std::string>>("KEYS", {"logits", "label"})
        .not_empty()
        .help(
            "Two names of the model's outputs or the batch: scores [N, NUM_CLASSES, ...], or the classes that were "
            "found, and targets [N, ...]. name.2 is the third tensor of a list.");
    p.optional<std::vector<std::string>>("CLASS_NAMES").help("What to call the classes; default: their numbers.");
    p.add<bool>("PER_CLASS", true)
        .help("Whether the figures of each class are reported, beside the means over classes.");
    p.add<int64_t>("IGNORE_INDEX", -100).help("Targets of this value do not count.");
    p.add<std::string>("PREFIX", "").help("Begins the name of each figure, to tell several such metrics apart.");
  }

  ConfusionMatrixMetric(const Config& config, Context& context)
      : config_(config),
        classes_(config.get<int64_t>("NUM_CLASSES")),
        ignore_index_(config.get<int64_t>("IGNORE_INDEX")),
        per_class_(config.get<bool>("PER_CLASS")),
        prefix_(config.get<std::string>("PREFIX")) {
    const auto keys = config.get<std::vector<std::string>>("KEYS");
    if (keys.size() != 2) {
      throw config.error("KEYS", cat("names ", keys.size(), keys.size() == 1 ? " tensor" : " tensors",
                                     "; it should name two, scores and targets"));
    }
    found_key_ = keys[0];
    target_key_ = keys[1];
    if (config.has("CLASS_NAMES")) {
      names_ = config.get<std::vector<std::string>>("CLASS_NAMES");
      if (static_cast<int64_t>(names_.size()) != classes_) {
        throw config.error("CLASS_NAMES", cat("has ", names_.size(), names_.size() == 1 ? " name" : " names",
                                              ", NUM_CLASSES is ", classes_, "; each class needs one"));
      }
    } else {
      for (int64_t c = 0; c < classes_; ++c) names_.push_back(cat(c));
    }
    counts_ = at::zeros({classes_ * classes_ + 2}, at::TensorOptions(at::kLong).device(context.device()));
  }

  void reset() override { counts_.zero_(); }

  void update(const Batch& batch, const Outputs& outputs) override {
    const c10::NoGradGuard no_grad;
    const at::Tensor& given = find_tensor(batch, outputs, target_key_);
    const at::Tensor found = classes_found(find_tensor(batch, outputs, found_key_), given);
    const at::Tensor target = given.to(at::kLong);
    // One cell for each pair of classes, one for pairs outside of them, one for ignored targets: no value needs to be
    // read to know whether it counts.
    const at::Tensor inside =
        target.ge(0).logical_and(target.lt(classes_)).logical_and(found.ge(0)).logical_and(found.lt(classes_));
    const at::Tensor cell = target.mul(classes_).add(found);
    const at::Tensor counted = cell.masked_fill(inside.logical_not(), outside())
                                   .masked_fill(target.eq(ignore_index_), ignored())
                                   .flatten()
                                   .to(counts_.device());
    counts_.scatter_add_(0, counted, at::ones_like(counted));
  }

  std::vector<at::Tensor> sums() override { return {counts_}; }

  void compute(Scalars& result) override {
    const at::Tensor counts = counts_.cpu();
    const auto* count = counts.const_data_ptr<int64_t>();
    if (count[outside()] > 0) {
      throw config_.error(
          "NUM_CLASSES", cat("is ", classes_, ", but of '", target_key_, "' or '", found_key_, "' ", count[outside()],
                             count[outside()] == 1 ? " value lies" : " values lie", " outside of 0 to ", classes_ - 1));
    }
    // A figure that divides by zero is 0 where the class occurs, as a target or found, and no number where it does not.
    struct Figure {
      const char* name;
      double sum = 0;
      std::vector<double> values;
    };
    Figure precision{"precision", 0, {}}, recall{"recall", 0, {}}, f1{"f1", 0, {}};
    int64_t occurring = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      int64_t targets = 0, found = 0;
      for (int64_t other = 0; other < classes_; ++other) {
        targets += count[c * classes_ + other];
        found += count[other * classes_ + c];
      }
      const auto hits = static_cast<double>(count[c * classes_ + c]);
      const bool occurs = targets + found > 0;
      occurring += occurs;
      const auto add = [&](Figure& figure, double above, int64_t below) {
        const double value = below > 0 ? above / static_cast<double>(below) : occurs ? 0 : kNaN;
        if (occurs) figure.sum += value;
        figure.values.push_back(value);
      };
      add(precision, hits, found);
      add(recall, hits, targets);
      add(f1, 2 * hits, targets + found);
    }
    for (const Figure* figure : {&precision, &recall, &f1}) {
      result.set(cat(prefix_, "macro_", figure->name),
                 occurring > 0 ? figure->sum / static_cast<double>(occurring) : kNaN);
    }
    if (!per_class_) return;
    for (std::size_t c = 0; c < names_.size(); ++c) {
      for (const Figure* figure : {&precision, &recall, &f1}) {
        result.set(cat(prefix_, figure->name, "@", names_[c]), figure->values[c]);
      }
    }
  }

 private:
  int64_t outside() const { return classes_ * classes_; }
  int64_t ignored() const { return outside() + 1; }

  at::Tensor classes_found(const at::Tensor& found, const at::Tensor& target) const {
    if (!c10::isIntegralType(target.scalar_type(), /*includeBool=*/true)) {
      throw config_.error("KEYS", cat("names '", target_key_,
                                      "' as targets, whose values are no integers and so no "
                                      "class numbers"));
    }
    if (c10::isIntegralType(found.scalar_type(), /*includeBool=*/true) && found.sizes() == target.sizes()) {
      return found.to(at::kLong);
    }
    bool fits = found.is_floating_point() && found.dim() == target.dim() + 1 && target.dim() >= 1;
    for (int64_t d = 0; fits && d < target.dim(); ++d) fits = target.size(d) == found.size(d == 0 ? 0 : d + 1);
    if (!fits) {
      throw config_.error("KEYS", cat("names '", found_key_, "' of shape ", found.sizes(), " and '", target_key_,
                                      "' of shape ", target.sizes(),
                                      ", which do not fit together: they should be scores [N, NUM_CLASSES, ...], or "
                                      "integers [N, ...], and targets [N, ...]"));
    }
    if (found.size(1) != classes_) {
      throw config_.error("NUM_CLASSES",
                          cat("is ", classes_, ", but '", found_key_, "' has scores for ", found.size(1), " classes"));
    }
    return found.argmax(1);
  }

  const Config config_;
  const int64_t classes_, ignore_index_;
  const bool per_class_;
  const std::string prefix_;
  std::string found_key_, target_key_;
  std::vector<std::string> names_;
  at::Tensor counts_;  // [target * classes + found], then outside and ignored; on the run's device
};

}  // namespace

GANTRY_PLUGIN("gantry-confusion-matrix", GANTRY_VERSION);
GANTRY_METRIC(ConfusionMatrixMetric, "ConfusionMatrixMetric",
              "Precision, recall and F1 of each class and their means over the classes.");

}  // namespace gantry
