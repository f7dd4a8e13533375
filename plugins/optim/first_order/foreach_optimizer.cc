#include "foreach_optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gantry/config.h>
#include <gantry/text.h>

#include <optional>

namespace {

/// What a step may change, kept to be put back without asking the device whether it must be.
class Undo {
 public:
  explicit Undo(const gantry::SlotBatch& batch) : live_(batch.parameters) {
    for (const auto& list : batch.state) live_.insert(live_.end(), list.begin(), list.end());
    for (const at::Tensor& tensor : live_) kept_.push_back(at::empty_like(tensor));
    at::_foreach_copy_(kept_, live_);
  }
  void where(const at::Tensor& found_inf) {
    const at::Tensor skipped = found_inf.ne(0);
    for (std::size_t i = 0; i < live_.size(); ++i) at::where_out(live_[i], skipped, kept_[i], live_[i]);
  }

 private:
  std::vector<at::Tensor> live_, kept_;
};

std::vector<std::string> with_step(const std::vector<std::string>& own_state) {
  std::vector<std::string> names = {"step"};
  names.insert(names.end(), own_state.begin(), own_state.end());
  return names;
}

}  // namespace

ForeachOptimizer::ForeachOptimizer(const gantry::Config& config, const std::vector<std::string>& own_state)
    : Optimizer(config), names_(with_step(own_state)) {}

void ForeachOptimizer::start(gantry::Slot& slot, const gantry::ParamGroup&) const {
  for (std::size_t i = kOwn; i < slot.state.size(); ++i) slot.state[i] = at::zeros_like(slot.parameter);
}

void ForeachOptimizer::step(std::span<gantry::Slot> slots, const gantry::StepScope& scope) {
  const auto start_counting = [this](gantry::Slot& slot) {
    slot.state[kStep] = at::zeros({}, slot.parameter.options().dtype(at::kFloat));
    start(slot, groups()[slot.group]);
  };
  batches_.for_each(slots, start_counting, [&](gantry::SlotBatch& batch) {
    std::optional<Undo> undo;
    if (scope.found_inf) undo.emplace(batch);
    if (scope.grad_scale) at::_foreach_div_(batch.gradients, *scope.grad_scale);
    gantry::count_up(batch.state[kStep]);
    update(batch, groups()[batch.group]);
    if (undo) undo->where(*scope.found_inf);
  });
}

std::vector<at::Tensor> ForeachOptimizer::penalized_gradients(const gantry::SlotBatch& batch,
                                                              const gantry::ParamGroup& group) {
  if (group.weight_decay() == 0) return batch.gradients;
  return at::_foreach_add(batch.gradients, batch.parameters, group.weight_decay());
}

at::Tensor as_vector(const std::vector<at::Tensor>& scalars) { return at::stack(scalars).to(at::kDouble); }

std::pair<double, double> two_numbers(const gantry::Config& config, const char* key) {
  const auto numbers = config.get<std::vector<double>>(key);
  if (numbers.size() != 2) throw config.error(key, gantry::cat("is two numbers, not ", numbers.size()));
  return {numbers[0], numbers[1]};
}
