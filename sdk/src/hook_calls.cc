#include "solver_impl.h"

namespace gantry {

ComponentError::Origin Solver::Impl::origin(const ComponentInfo& info, const SourceLocation& where,
                                            const char* point) const {
  ComponentError::Origin origin = origin_of(info, where, point);
  if (!frames.empty()) {
    origin.mode = mode_name(mode());
    origin.iteration = total_iter[static_cast<int>(mode())];
  }
  return origin;
}

ComponentError::Origin Solver::Impl::origin(const HookInstance& hook, const char* point) const {
  ComponentError::Origin result = origin(*hook.info, hook.where, point);
  result.component = "hook " + hook.label;
  return result;
}

void Solver::Impl::call_point(const char* point, void (Hook::*member)(Solver&)) {
  Solver& solver = base.solver();
  for (HookInstance* hook : hooks_of[static_cast<int>(mode())])
    call(*hook, point, [&] { ((*hook->hook).*member)(solver); });
}

void Solver::Impl::tell_evaluated(Mode mode) {
  Solver& solver = base.solver();
  const Scalars& values = results[static_cast<int>(mode)];
  for (auto& hook : hooks)
    if (hook->eval != nullptr) call(*hook, "evaluated", [&] { hook->eval->evaluated(solver, mode, values); });
  if (auto* schedule = dynamic_cast<EvalObserver*>(lr_scheduler.get()))
    guarded([&] { schedule->evaluated(solver, mode, values); },
            [&] { return origin(*scheduler_info, {}, "evaluated"); });
}

int64_t Solver::Impl::steps_per_epoch() const {
  const auto& train = data[static_cast<int>(Mode::train)];
  if (train == nullptr || engine == nullptr) return 0;
  const int64_t window = engine->accumulate_step();
  return (train->batches_per_epoch() + window - 1) / window;
}

void Solver::Impl::set_learning_rate() {
  if (lr_scheduler == nullptr && learning_rate_hooks.empty()) return;
  const Frame& frame = frames.back();
  SchedulePosition position;
  position.step = engine->steps();
  position.epoch =
      static_cast<double>(epoch - 1) + static_cast<double>(frame.iter) / static_cast<double>(frame.max_iter);
  position.total_steps = steps_per_epoch() * max_epochs;
  position.total_epochs = static_cast<double>(max_epochs);
  if (!schedule_counts_epochs)
    position.at = static_cast<double>(position.step);
  else
    position.at = fractional_epochs ? position.epoch : static_cast<double>(epoch - 1);
  auto& groups = optimizer->groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    double rate = groups[g].base_lr();
    if (lr_scheduler != nullptr)
      rate = guarded([&] { return lr_scheduler->lr(position, rate, static_cast<int64_t>(g)); },
                     [&] { return origin(*scheduler_info, {}, "lr"); });
    for (HookInstance* hook : learning_rate_hooks)
      call(*hook, "learning_rate", [&] { rate = hook->learning_rate->learning_rate(position, rate, groups[g]); });
    groups[g].set_lr(rate);
  }
}

void Solver::Impl::before_step() {
  set_learning_rate();
  for (auto& hook : hooks)
    if (hook->gradient != nullptr) call(*hook, "before_step", [&] { hook->gradient->before_step(base.solver()); });
}

void Solver::Impl::update(Optimizer& optimizer, std::span<Slot> slots, const StepScope& scope) {
  guarded([&] { optimizer.step(slots, scope); }, [&] { return origin(*optimizer_info, {}, "step"); });
}

void Solver::Impl::after_step() {
  for (auto& hook : hooks)
    if (hook->gradient != nullptr) call(*hook, "after_step", [&] { hook->gradient->after_step(base.solver()); });
}

}  // namespace gantry
