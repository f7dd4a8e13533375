#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sub.h>
#include <gantry/gantry.h>
#include <gantry/model.h>

#include <algorithm>

namespace {

/// The moving average of the weights, and evaluations that run with it.
class ModelEmaHook final : public gantry::Hook,
                           public gantry::GradientHook,
                           public gantry::EvaluationWeights,
                           public gantry::ResumeObserver,
                           public gantry::Stateful {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(100);
    p.single_instance();
    p.add<double>("BETA", 0.9999)
        .at_least(0)
        .below(1)
        .help("How much of the average stays at each optimizer step; the rest comes from the weights.");
    p.add<bool>("WARMUP", false)
        .help("Whether early steps count more: the n-th update, from 0, keeps min(BETA, (1 + n) / (10 + n)).");
    p.add<bool>("EVAL_EMA", true).help("Whether evaluations and tests run with the average.");
  }

  ModelEmaHook(const gantry::Config& config, gantry::Context&)
      : beta_(config.get<double>("BETA")),
        warmup_(config.get<bool>("WARMUP")),
        evaluates_(config.get<bool>("EVAL_EMA")) {}

  void before_solve(gantry::Solver& solver) override {
    std::vector<gantry::NamedParameter> all = gantry::named_parameters(*solver.model());
    for (gantry::NamedParameter& buffer : gantry::named_buffers(*solver.model())) all.push_back(std::move(buffer));
    for (gantry::NamedParameter& item : all) {
      if (!item.tensor.is_floating_point()) continue;
      names_.push_back(std::move(item.name));
      weights_.push_back(std::move(item.tensor));
    }
    start_from_weights();
  }

  // A checkpoint from before this hook was added: the average starts from its weights.
  void on_resume(gantry::Solver&) override {
    if (!loaded_) start_from_weights();
  }

  void after_step(gantry::Solver& solver) override {
    const at::Tensor skipped = solver.step_skipped();
    if (skipped.is_cpu() && *static_cast<const bool*>(skipped.const_data_ptr())) return;
    at::NoGradGuard no_grad;
    const double count = static_cast<double>(updates_);
    const double keep = warmup_ ? std::min(beta_, (1 + count) / (10 + count)) : beta_;
    // Where the average has more bits than the weights, these are widened first.
    for (std::size_t i : narrow_) current_[i] = weights_[i].to(averages_[i].scalar_type());
    if (skipped.is_cpu()) {
      at::_foreach_lerp_(averages_, current_, at::Scalar(1 - keep));
    } else {
      // Only the device knows whether there was a step: the difference is multiplied by zero where there was none.
      const at::Tensor share = skipped.logical_not().to(at::kFloat).mul_(1 - keep);
      std::vector<at::Tensor> differences = at::_foreach_sub(current_, averages_);
      at::_foreach_mul_(differences, share);
      at::_foreach_add_(averages_, differences);
    }
    for (std::size_t i : narrow_) current_[i].reset();
    ++updates_;
  }

  gantry::State evaluation_weights() const override {
    gantry::State state;
    if (!evaluates_ || updates_ == 0) return state;
    for (std::size_t i = 0; i < names_.size(); ++i) state.set(names_[i], averages_[i]);
    return state;
  }

  gantry::State state() const override {
    gantry::State state;
    state.set_int("updates", updates_);
    for (std::size_t i = 0; i < names_.size(); ++i) state.set("average/" + names_[i], averages_[i]);
    return state;
  }

  void load_state(const gantry::State& state, int) override {
    const std::vector<std::string> differences = gantry::state_differences(state, this->state());
    if (!differences.empty())
      throw gantry::Error("the saved average is not that of this model:\n  " + gantry::join(differences, "\n  "));
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < names_.size(); ++i) averages_[i].copy_(state.tensor("average/" + names_[i]));
    updates_ = state.integer("updates");
    loaded_ = true;
  }

 private:
  void start_from_weights() {
    at::NoGradGuard no_grad;
    averages_.clear();
    current_.clear();
    narrow_.clear();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      // A small share of a change would be lost in the rounding of 16 bits.
      const bool narrow = weights_[i].scalar_type() == at::kHalf || weights_[i].scalar_type() == at::kBFloat16;
      averages_.push_back(narrow ? weights_[i].detach().to(at::kFloat) : weights_[i].detach().clone());
      current_.push_back(narrow ? at::Tensor() : weights_[i].detach());
      if (narrow) narrow_.push_back(i);
    }
    updates_ = 0;
  }

  const double beta_;
  const bool warmup_, evaluates_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> weights_;   // the model's own
  std::vector<at::Tensor> averages_;  // of each
  std::vector<at::Tensor> current_;   // the weights, in the dtype of the average
  std::vector<std::size_t> narrow_;   // those whose dtype differs
  int64_t updates_ = 0;
  bool loaded_ = false;
};

}  // namespace

GANTRY_PLUGIN("gantry-model-ema", GANTRY_VERSION);
GANTRY_HOOK(ModelEmaHook, "ModelEmaHook", "Keeps a moving average of the weights; evaluations can run with it.");
