#include <ATen/core/grad_mode.h>

#include "gantry/text.h"
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

void Solver::Impl::set_learning_rate() {
  if (lr_scheduler == nullptr && learning_rate_hooks.empty()) return;
  // Known once hooks have set the window's length.
  if (total_steps == 0) total_steps = steps_in_iterations(total_max_iter());
  const Frame& frame = frames.back();
  SchedulePosition position;
  position.step = engine->steps();
  // Of the whole epoch, also where MAX_STEPS cuts it.
  const auto batches = static_cast<double>(epoch_range(epoch).batches);
  position.epoch = static_cast<double>(epoch - 1) + static_cast<double>(frame.iter) / batches;
  position.total_steps = total_steps;
  position.total_epochs = max_steps == 0 ? static_cast<double>(max_epochs)
                                         : static_cast<double>(max_steps) / static_cast<double>(fold_batches());
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
    if (momentum_schedule != nullptr)
      groups[g].set_momentum(guarded([&] { return momentum_schedule->momentum(position, static_cast<int64_t>(g)); },
                                     [&] { return origin(*scheduler_info, {}, "momentum"); }));
  }
}

void Solver::Impl::before_step() {
  set_learning_rate();
  for (auto& hook : hooks)
    if (hook->gradient != nullptr) call(*hook, "before_step", [&] { hook->gradient->before_step(base.solver()); });
}

void Solver::Impl::update(Optimizer& optimizer, std::span<Slot> slots, const StepScope& scope) {
  guarded(
      [&] {
        if (closure_optimizer == nullptr) return optimizer.step(slots, scope);
        step_with_closure(slots);
      },
      [&] { return origin(*optimizer_info, {}, "step"); });
}

void Solver::Impl::step_with_closure(std::span<Slot> slots) {
  if (engine->accumulate_step() != 1)
    throw Error(cat("it evaluates the loss of one batch several times, and a step has ", engine->accumulate_step(),
                    " batches: set ACCUMULATE_STEP to 1"));
  const Frame& frame = frames.back();
  const Batch& batch = *frame.batch;
  const auto evaluate = [&] {
    const at::AutoGradMode gradients(true);
    for (Slot& slot : slots) slot.parameter.mutable_grad().reset();
    const Outputs outputs = base.run_step_train(batch, frame.iter, iterations(), context.world().rank());
    const at::Tensor loss = outputs.tensor("loss");
    loss.backward();
    for (Slot& slot : slots) slot.gradient = slot.parameter.grad();
    return loss.item().toDouble();
  };
  closure_optimizer->step(slots, frame.outputs.tensor("loss").item().toDouble(), evaluate);
}

State Solver::Impl::evaluation_weights() {
  State all;
  for (auto& hook : hooks)
    if (hook->evaluation_weights != nullptr)
      call(*hook, "evaluation_weights", [&] {
        for (const State::Leaf& leaf : hook->evaluation_weights->evaluation_weights().leaves())
          all.set(leaf.path, leaf.value);
      });
  return all;
}

void Solver::Impl::after_step() {
  for (auto& hook : hooks)
    if (hook->gradient != nullptr) call(*hook, "after_step", [&] { hook->gradient->after_step(base.solver()); });
}

}  // namespace gantry
