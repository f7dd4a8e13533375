#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "evaluation_scope.h"
#include "flops.h"
#include "gantry/text.h"
#include "loop_parts.h"
#include "rng_state.h"
#include "solver_impl.h"

// Points, save points and training; base_solver_evaluation.cc has evaluations. What must stay true: counters advance
// only after the hooks of an iteration; a save point is reached only with no window open; `phase` names what comes next
// wherever a save point is reached.

namespace gantry {

namespace {

std::string names_of(const Outputs& outputs) {
  std::vector<std::string> names;
  for (const auto& entry : outputs.entries()) names.push_back(entry.first);
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace

// --- points ---

void BaseSolver::before_solve() {
  Solver::Impl& s = solver_->impl();
  for (auto& hook : s.hooks) {
    s.call(*hook, "before_solve", [&] { hook->hook->before_solve(*solver_); });
    hook->started = true;
  }
  resume();
  if (data(Mode::train) == nullptr || context_.dry_run()) return;
  s.begin_run_time();
  const std::vector<std::string>& signals = services_of(context_).signals;
  if (s.interrupts == nullptr || !s.signals_wanted || signals.empty()) return;
  s.interrupts->arm(signals);
  s.armed = true;
  s.logger.info(signals.size() == 1 ? cat("signals armed: ", signals.front(), " saves a checkpoint and pauses the run")
                                    : cat("signals armed: ", join({signals.begin(), signals.end() - 1}, ", "), " and ",
                                          signals.back(), " save a checkpoint and pause the run"));
}

void BaseSolver::resume() {
  Solver::Impl& s = solver_->impl();
  const auto& from = services_of(context_).resume;
  if (!from.has_value()) return;
  const bool model_alone = data(Mode::train) == nullptr || context_.dry_run();
  try {
    if (model_alone)
      resume_model(*from);
    else
      load_checkpoint(read_checkpoint(*from));
  } catch (const ConfigError&) {
    throw;
  } catch (const ComponentError&) {
    throw;
  } catch (const Error& error) {
    throw config_.error("RESUME_FROM", cat(from->path, ": ", error.what()));
  }
  s.last_checkpoint = from->path;
  if (model_alone) return;
  if (s.entry.has_value() && s.max_epochs > 0 && s.epoch > s.max_epochs)
    throw config_.error("MAX_EPOCHS", cat("MAX_EPOCHS is ", s.max_epochs, ", and ", from->path,
                                          " was saved within epoch ", s.epoch, ": raise MAX_EPOCHS"));
  if (s.entry.has_value() && s.max_steps > 0 && s.iterations() > s.max_steps)
    throw config_.error("MAX_STEPS", cat("MAX_STEPS is ", s.max_steps, ", and ", from->path, " was saved after ",
                                         s.iterations(), " iterations: raise MAX_STEPS"));
  if (const auto& restored = services_of(context_).restored) restored();
  const RngState random = RngState::now();
  for (auto& hook : s.hooks)
    if (hook->resume != nullptr) s.call(*hook, "on_resume", [&] { hook->resume->on_resume(*solver_); });
  random.restore();
  if (s.served == Stop::finish)
    s.logger.info("a hook had finished this run before it was saved: no more epochs");
  else if (!s.entry.has_value() && !s.more_to_train())
    s.logger.info(s.max_steps > 0
                      ? cat("all ", s.max_steps, " iterations are trained already; a larger MAX_STEPS trains on")
                      : cat("all ", s.max_epochs, " epochs are trained already; a larger MAX_EPOCHS trains on"));
}

void BaseSolver::resume_model(const CheckpointInfo& from) {
  Solver::Impl& s = solver_->impl();
  load_model(read_checkpoint(from, "model"));
  const auto has_weights = [](const auto& hook) {
    return hook->evaluation_weights != nullptr && hook->stateful != nullptr;
  };
  if (std::any_of(s.hooks.begin(), s.hooks.end(), has_weights))
    s.load_evaluation_weights(read_checkpoint(from, "state"));
}

void BaseSolver::after_solve() {
  Solver::Impl& s = solver_->impl();
  std::exception_ptr first;
  for (auto& hook : s.hooks) {
    if (!hook->started) continue;
    hook->started = false;
    try {
      s.call(*hook, "after_solve", [&] { hook->hook->after_solve(*solver_); });
    } catch (const Error& error) {
      if (first == nullptr)
        first = std::current_exception();
      else
        solver_->logger().error(error.what());
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void BaseSolver::before_epoch() { solver_->impl().call_point("before_epoch", &Hook::before_epoch); }
void BaseSolver::after_epoch() { solver_->impl().call_point("after_epoch", &Hook::after_epoch); }
void BaseSolver::before_all_iter() { solver_->impl().call_point("before_all_iter", &Hook::before_all_iter); }
void BaseSolver::after_all_iter() { solver_->impl().call_point("after_all_iter", &Hook::after_all_iter); }
void BaseSolver::before_iter() { solver_->impl().call_point("before_iter", &Hook::before_iter); }
void BaseSolver::after_iter() { solver_->impl().call_point("after_iter", &Hook::after_iter); }

Scalars BaseSolver::collect_log_vars() {
  Scalars vars;
  Solver::Impl& s = solver_->impl();
  if (s.optimizer == nullptr || s.mode() != Mode::train) return vars;
  const auto& groups = s.optimizer->groups();
  if (groups.size() == 1) {
    vars.set("lr", groups.front().lr());
  } else {
    for (std::size_t g = 0; g < groups.size(); ++g) vars.set(cat("pg", g, "_lr"), groups[g].lr());
  }
  return vars;
}

// --- save points ---

void Solver::Impl::begin_run_time() {
  if (!run_time.set()) return;
  int64_t bytes = 0;
  for (const State::Leaf& leaf : base.save_checkpoint().leaves()) bytes += static_cast<int64_t>(leaf.value.nbytes());
  run_time.begin(bytes);
  logger.info(cat("MAX_RUN_TIME: ", run_time.seconds(),
                  " s after the program's start at the latest, a checkpoint is saved and the run pauses"));
  if (run_time.reached())
    logger.warn(cat("MAX_RUN_TIME leaves no time to train: the start and the ",
                    short_number(run_time.kept_back_seconds()),
                    " s kept back for saving take all of it; give it more"));
}

void Solver::Impl::poll_interrupts() {
  if (stop == Stop::pause) return;
  const char* why = armed ? interrupts->pending() : nullptr;
  // In an open window a pause could not begin; what is kept back is the time between places where it can.
  const bool window_open = engine != nullptr && engine->window_open();
  if (why == nullptr && !window_open && run_time.reached()) why = "MAX_RUN_TIME";
  if (why == nullptr) return;
  base.solver().request_stop(Stop::pause, why);
  logger.info(cat(why, ": saving a checkpoint and pausing, as soon as nothing is half done"));
}

void Solver::Impl::write_checkpoint() {
  CheckpointInfo info;
  info.iteration = total_iter[static_cast<int>(Mode::train)];
  info.epoch = epoch;
  info.step = engine == nullptr ? 0 : engine->steps();
  info.phase = phase_name(phase);
  info.why = join(save_whys, ", ");
  info.machine = services_of(context).machine;
  info.settings = services_of(context).settings;
  for (Mode mode : kModes)
    for (const auto& [name, value] : results[static_cast<int>(mode)].entries())
      info.metrics.emplace_back(cat(mode_name(mode), "/", name), value);
  save_whys.clear();
  collect_save(/*wait=*/true);
  run_time.save_begins();
  if (background_save == nullptr) return checkpoint_saved(checkpoints.save(base.save_checkpoint(), std::move(info)));
  background_save->start(base.save_checkpoint(), std::move(info));
  if (pausing()) collect_save(/*wait=*/true);
}

void Solver::Impl::collect_save(bool wait) {
  if (background_save == nullptr) return;
  if (const std::optional<CheckpointInfo> saved = background_save->collect(wait)) checkpoint_saved(*saved);
}

void Solver::Impl::checkpoint_saved(const CheckpointInfo& saved) {
  run_time.save_ends();
  last_checkpoint = saved.path;
  logger.info(cat("saved checkpoints/", saved.name, " (", saved.why, ")"));
  for (auto& hook : hooks)
    if (hook->checkpoint != nullptr)
      call(*hook, "checkpoint_saved", [&] { hook->checkpoint->checkpoint_saved(base.solver(), saved); });
}

void BaseSolver::save_point(SavePoint) {
  Solver::Impl& s = solver_->impl();
  s.poll_interrupts();
  s.collect_save(/*wait=*/false);
  World::Control mine;
  mine.save = s.save_whys.empty() ? 0 : 1;
  mine.stop = static_cast<int>(s.stop);
  const World::Control all = context_.world().control(mine);
  const bool trains = data(Mode::train) != nullptr;
  if (all.stop > static_cast<int>(s.served)) {
    s.stop = s.served = static_cast<Stop>(all.stop);
    const std::string why = s.stop_why.empty() ? "another process asked for it" : s.stop_why;
    s.logger.info(cat(s.pausing() ? "pausing: " : "stopping: ", why));
    if (s.pausing() && trains) solver_->request_checkpoint(why);
  } else if (all.save != 0 && s.save_whys.empty()) {
    solver_->request_checkpoint("another process asked for it");
  }
  if (!s.save_whys.empty()) s.write_checkpoint();
}

bool BaseSolver::stopping() const { return solver_->impl().served != Stop::none; }

// --- training ---

void BaseSolver::solve() {
  Solver::Impl& s = solver_->impl();
  try {
    before_solve();
    if (data(Mode::train) != nullptr) {
      bool entering = s.entry.has_value();
      while (entering || (s.more_to_train() && !stopping())) {
        // A signal during the last save: before another epoch's points, which would be saved as the same iteration.
        s.poll_interrupts();
        if (!entering && s.phase == Phase::epoch_done && s.stop == Stop::pause) {
          save_point(SavePoint::after_epoch);
          continue;
        }
        entering = false;
        solve_train();
      }
    } else if (data(Mode::eval) != nullptr) {
      solve_eval();
    }
    if (!s.pausing() && s.phase != Phase::finished) {
      s.phase = Phase::testing_due;
      s.collect_save(/*wait=*/true);  // TEST_WITH best wants it
      if (data(Mode::test) != nullptr) solve_test();
      if (!s.pausing()) s.phase = Phase::finished;
    }
    s.collect_save(/*wait=*/true);
    if (s.armed) s.interrupts->ignore();
    s.exit_reason = s.pausing()                ? ExitReason::paused
                    : s.served == Stop::finish ? ExitReason::finish_requested
                                               : ExitReason::done;
  } catch (...) {
    s.exit_reason = ExitReason::failed;
    const std::string message = current_exception_message();
    try {
      s.collect_save(/*wait=*/true);
    } catch (const Error& error) {
      solver_->logger().error(error.what());
    }
    for (auto& hook : s.hooks) {
      if (hook->exception == nullptr || !hook->started) continue;
      try {
        s.call(*hook, "on_exception", [&] { hook->exception->on_exception(*solver_, message); });
      } catch (const Error& error) {
        solver_->logger().error(error.what());
      }
    }
    try {
      after_solve();
    } catch (const Error& error) {
      solver_->logger().error(error.what());  // the first error is the one that leaves
    }
    throw;
  }
  after_solve();
}

void BaseSolver::solve_train() {
  Solver::Impl& s = solver_->impl();
  const std::optional<Solver::Impl::Entry> entry = std::exchange(s.entry, std::nullopt);
  if (!entry.has_value()) {
    ++s.epoch;
    s.phase = Phase::iterating;
  }
  s.data_state = s.training_data_state();
  const int64_t done = entry.has_value() ? entry->iter : 0;
  int64_t batches = s.epoch_range(s.epoch).batches;
  if (s.max_steps > 0) batches = std::min(batches, s.max_steps - (s.iterations() - done));
  PhaseScope phase(s, Mode::train, batches);
  if (entry.has_value()) {
    s.frames.back().iter = entry->iter;
    s.frames.back().means = entry->means;
    s.frames.back().resumed = true;
  } else {
    before_epoch();
  }
  if (s.phase == Phase::interim_due) interim_evaluation();
  if (s.pausing()) return;
  if (s.phase == Phase::iterating) {
    run_train();
    if (s.pausing()) return;
    s.phase = evaluation_due_after_epoch() ? Phase::evaluating_due : Phase::pass_done;
  }
  if (s.phase == Phase::evaluating_due) {
    solve_eval();
    if (s.pausing()) return;
  }
  after_epoch();
  s.phase = Phase::epoch_done;
  save_point(SavePoint::after_epoch);
}

bool BaseSolver::evaluation_due_after_epoch() {
  Solver::Impl& s = solver_->impl();
  if (data(Mode::eval) == nullptr || s.eval_interval.off()) return false;
  if (stopping() || !s.more_to_train()) return true;
  if (s.unit_of(s.eval_interval) != Interval::Unit::epochs) return s.window_completes(s.eval_interval);
  return s.epoch % static_cast<int64_t>(s.eval_interval.count) == 0;
}

bool BaseSolver::evaluation_due_after_iteration() {
  Solver::Impl& s = solver_->impl();
  const bool window_open = s.engine != nullptr && s.engine->window_open();
  const Frame& frame = s.frames.back();
  if (data(Mode::eval) == nullptr || s.eval_interval.off() || window_open || frame.iter == frame.max_iter) return false;
  return s.window_completes(s.eval_interval);
}

/// One that was due in the middle of an epoch; where the epoch is to end instead, its end has one.
void BaseSolver::interim_evaluation() {
  if (stopping())
    solver_->impl().phase = Phase::iterating;
  else
    solve_eval();
}

void BaseSolver::run_train() {
  Solver::Impl& s = solver_->impl();
  Loader& loader = *data(Mode::train);
  const at::Device device = context_.device();
  const int rank = context_.world().rank();
  const double nominal =
      s.model->nominal_weight() > 0 ? s.model->nominal_weight() : static_cast<double>(loader.batch_size());
  int64_t& total_iter = s.total_iter[static_cast<int>(Mode::train)];
  if (!s.frames.back().resumed) before_all_iter();
  s.model->train();
  auto start = std::chrono::steady_clock::now();
  const Solver::Impl::EpochRange range = s.epoch_range(s.epoch);
  loader.begin(range.pass, range.first_batch + s.frames.back().iter,
               (range.pass - 1) / s.draw_every * s.draw_every + 1);
  const auto between_windows = [&] { return s.engine == nullptr || !s.engine->window_open(); };
  Batch batch;
  while (!stopping() && s.frames.back().iter < s.frames.back().max_iter) {
    // While data is waited for, nothing has happened since the last save point.
    if (!wait_for_data(s, loader, between_windows)) {
      save_point(SavePoint::after_window);
      continue;
    }
    if (!next_batch(s, loader, batch)) break;
    Frame& frame = s.frames.back();
    frame.batch = &batch;
    frame.log_values.clear();
    s.probes->clear();
    before_iter();
    move_to(batch, device);
    frame.outputs = run_step_train(batch, frame.iter, total_iter, rank);
    const double weight = output_weight(frame.outputs, batch.weight);
    if (s.engine != nullptr) {
      Value* loss = frame.outputs.find("loss");
      const auto* tensor = loss == nullptr ? nullptr : std::get_if<at::Tensor>(loss);
      if (tensor == nullptr || !tensor->defined() || tensor->dim() != 0 || !tensor->requires_grad())
        throw ComponentError(
            s.origin(*s.model_info, config_.where("MODEL"), "forward"),
            cat("training needs a 0-dim output \"loss\" with a graph; the outputs are: ", names_of(frame.outputs)));
      s.engine->begin_iteration(*tensor, weight, nominal, frame.iter + 1 == frame.max_iter);
    }
    for (auto& [name, value] : frame.outputs.entries())
      if (auto* tensor = std::get_if<at::Tensor>(&value); tensor != nullptr && tensor->requires_grad())
        *tensor = tensor->detach();
    frame.means.add(frame.outputs, weight);
    after_iter();
    s.train_samples += batch.size();
    ++total_iter;
    ++frame.iter;
    frame.batch = nullptr;
    const bool interim = evaluation_due_after_iteration();
    if (interim) s.phase = Phase::interim_due;
    if (between_windows()) save_point(SavePoint::after_window);
    if (!interim || s.pausing()) continue;
    s.train_time += std::chrono::steady_clock::now() - start;
    interim_evaluation();
    start = std::chrono::steady_clock::now();
  }
  loader.stop();
  s.train_time += std::chrono::steady_clock::now() - start;
  if (s.pausing()) return;
  s.results[static_cast<int>(Mode::train)] = means_of(s.frames.back());
  after_all_iter();
}

Outputs BaseSolver::run_step_train(const Batch& batch, int64_t, int64_t, int) { return forward(batch, Mode::train); }
Outputs BaseSolver::run_step_eval(const Batch& batch, int64_t, int64_t, int) { return forward(batch, Mode::eval); }
Outputs BaseSolver::run_step_test(const Batch& batch, int64_t, int64_t, int) { return forward(batch, Mode::test); }

Outputs BaseSolver::forward(const Batch& batch, Mode mode) {
  Solver::Impl& s = solver_->impl();
  return guarded([&] { return s.model->forward(batch, mode); },
                 [&] { return s.origin(*s.model_info, config_.where("MODEL"), "forward"); });
}

int64_t BaseSolver::register_flops(const Batch& data, const std::vector<std::string>& keys) {
  Solver::Impl& s = solver_->impl();
  Batch one;
  for (const auto& [name, value] : data.entries()) {
    if (!keys.empty() && std::find(keys.begin(), keys.end(), name) == keys.end()) continue;
    const auto* tensor = std::get_if<at::Tensor>(&value);
    one.set(name, tensor != nullptr && tensor->dim() > 0 ? Value(tensor->narrow(0, 0, 1)) : value);
  }
  if (!data.ids.empty()) one.ids = {data.ids.front()};
  one.weight = 1;
  move_to(one, context_.device());
  EvaluationScope evaluation(*s.model);
  const ProbesAside aside(*s.model);
  at::NoGradGuard no_grad;
  s.model_flops = count_flops([&] { run_step_eval(one, 0, 0, context_.world().rank()); });
  return s.model_flops;
}

}  // namespace gantry
