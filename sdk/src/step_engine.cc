#include "gantry/step_engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>

#include <cmath>

#include "cpu_scalar.h"
#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {

StepEngine::Observer::~Observer() = default;

struct StepEngine::Impl {
  Impl(Optimizer& o, std::vector<Slot> all, std::unique_ptr<GradientSync> exchange, Observer& who)
      : optimizer(o), slots(std::move(all)), sync(std::move(exchange)), observer(who) {}

  Optimizer& optimizer;
  std::vector<Slot> slots;
  std::unique_ptr<GradientSync> sync;
  Observer& observer;

  double clip = -1;
  int64_t accumulate = 1;
  NonFinite nonfinite = NonFinite::error;

  at::Tensor loss;
  double weight = 0, nominal_weight = 1;
  bool last_of_epoch = false;

  int64_t in_window = 0;     // iterations whose gradients are held
  double window_weight = 0;  // this process's Σw
  bool window_bad = false;   // under NonFinite::skip
  bool ended_window = false;
  int64_t steps = 0;
  at::Tensor norm;                    // of the window being stepped, once computed
  std::vector<at::Tensor> gradients;  // scratch, kept for its capacity
  at::Tensor scale;                   // the last factor given to backward
  double scale_value = 1;
  at::Tensor yes, no;
  bool skipped = false;

  /// One process and one iteration to a window: the loss's own mean is the step's, whatever the batch's size.
  bool plain() const { return accumulate == 1 && sync->size() == 1; }

  const at::Tensor& scale_tensor(double value) {
    if (!scale.defined() || scale_value != value || scale.dtype() != loss.dtype() || scale.device() != loss.device()) {
      scale = at::scalar_tensor(value, loss.options().requires_grad(false));
      scale_value = value;
    }
    return scale;
  }

  /// On the CPU a loss is read at once; elsewhere reading it would wait for the device.
  bool finite(const at::Tensor& value) const { return !value.is_cpu() || std::isfinite(read_cpu_scalar(value)); }

  void found_nonfinite(const char* what, const at::Tensor& value) {
    if (nonfinite == NonFinite::error)
      throw Error(cat("the ", what, " is ", number_text(value.item().toDouble()), " after ", steps,
                      " optimizer steps: nothing was updated with it. Lower the learning rate or clip gradients "
                      "(BackwardHook.GRADIENT_CLIP); NONFINITE: skip leaves such updates out"));
    window_bad = true;
  }

  void collect_gradients() {
    gradients.clear();
    for (Slot& slot : slots) {
      slot.gradient = slot.parameter.grad();
      if (!slot.gradient.defined()) continue;
      // A sparse one by its values, each there once: its norm is theirs, and scaling them scales it.
      if (slot.gradient.is_sparse()) slot.parameter.mutable_grad() = slot.gradient = slot.gradient.coalesce();
      gradients.push_back(slot.gradient.is_sparse() ? slot.gradient._values() : slot.gradient);
    }
  }

  const at::Tensor& gradient_norm() {
    if (!norm.defined()) {
      at::NoGradGuard no_grad;
      if (gradients.empty()) {
        norm = at::scalar_tensor(0.0, at::TensorOptions().dtype(at::kFloat));
      } else {
        norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)));
      }
    }
    return norm;
  }

  void clip_gradients() {
    const at::Tensor& total = gradient_norm();
    if (nonfinite != NonFinite::ignore && !finite(total)) found_nonfinite("gradient norm", total);
    if (window_bad || gradients.empty()) return;
    if (total.is_cpu()) {
      const double factor = clip / (read_cpu_scalar(total) + 1e-6);
      if (factor < 1) at::_foreach_mul_(gradients, at::Scalar(factor));
    } else {
      at::_foreach_mul_(gradients, total.add(1e-6).reciprocal().mul(clip).clamp_max(1.0));
    }
  }

  void end_window() {
    at::NoGradGuard no_grad;
    collect_gradients();
    const double total = sync->finish(window_weight);
    norm.reset();
    if (total == 0) window_bad = true;  // no sample took part: nothing to learn from
    if (!plain() && !window_bad) {
      const double factor = static_cast<double>(accumulate) * nominal_weight * sync->size() / total;
      if (factor != 1 && !gradients.empty()) at::_foreach_mul_(gradients, at::Scalar(factor));
    }
    if (clip > 0 && !window_bad) clip_gradients();
    observer.before_step();
    skipped = window_bad;
    if (!skipped) {
      observer.update(optimizer, slots, StepScope{});
      ++steps;
    }
    observer.after_step();
    gradients.clear();
    for (Slot& slot : slots) {
      slot.gradient.reset();
      slot.parameter.mutable_grad().reset();
    }
    in_window = 0;
    window_weight = 0;
    window_bad = false;
    ended_window = true;
  }
};

StepEngine::StepEngine(Optimizer& optimizer, std::vector<Slot> slots, std::unique_ptr<GradientSync> sync,
                       Observer& observer)
    : impl_(std::make_unique<Impl>(optimizer, std::move(slots), std::move(sync), observer)) {
  std::vector<at::Tensor> parameters;
  for (const Slot& slot : impl_->slots) parameters.push_back(slot.parameter);
  impl_->sync->attach(parameters);
  const auto device = parameters.empty() ? at::Device(at::kCPU) : parameters.front().device();
  impl_->yes = at::scalar_tensor(true, at::TensorOptions().dtype(at::kBool).device(device));
  impl_->no = at::scalar_tensor(false, at::TensorOptions().dtype(at::kBool).device(device));
}
StepEngine::~StepEngine() = default;

void StepEngine::set_gradient_clip(double max_norm) { impl_->clip = max_norm; }
void StepEngine::set_accumulate_step(int64_t iterations) { impl_->accumulate = iterations; }
void StepEngine::set_nonfinite(NonFinite policy) { impl_->nonfinite = policy; }
int64_t StepEngine::accumulate_step() const { return impl_->accumulate; }

void StepEngine::begin_iteration(at::Tensor loss, double weight, double nominal_weight, bool last_of_epoch) {
  Impl& s = *impl_;
  s.loss = std::move(loss);
  s.weight = weight;
  s.nominal_weight = nominal_weight;
  s.last_of_epoch = last_of_epoch;
  s.ended_window = false;
}

void StepEngine::backward() {
  Impl& s = *impl_;
  if (!s.loss.defined()) return;
  ++s.in_window;
  s.window_weight += s.weight;
  const bool window_ends = s.in_window == s.accumulate || s.last_of_epoch;
  if (s.nonfinite != NonFinite::ignore && !s.finite(s.loss)) s.found_nonfinite("training loss", s.loss);
  s.sync->before_backward(window_ends);
  if (!s.window_bad) {
    const double factor = s.plain() ? 1 : s.weight / (static_cast<double>(s.accumulate) * s.nominal_weight);
    s.loss.backward(factor == 1 ? at::Tensor() : s.scale_tensor(factor));
  }
  s.loss.reset();
  if (window_ends) s.end_window();
}

bool StepEngine::backward_step() const { return impl_->ended_window; }
bool StepEngine::window_open() const { return impl_->in_window > 0; }
int64_t StepEngine::steps() const { return impl_->steps; }
void StepEngine::set_steps(int64_t steps) { impl_->steps = steps; }
at::Tensor StepEngine::gradient_norm() { return impl_->gradient_norm(); }
at::Tensor StepEngine::step_skipped() const { return impl_->skipped ? impl_->yes : impl_->no; }
const at::Tensor& StepEngine::loss() const { return impl_->loss; }
std::vector<Slot>& StepEngine::slots() { return impl_->slots; }
Optimizer& StepEngine::optimizer() { return impl_->optimizer; }

}  // namespace gantry
