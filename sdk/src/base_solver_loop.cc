#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "evaluation_scope.h"
#include "flops.h"
#include "gantry/text.h"
#include "rng_state.h"
#include "solver_impl.h"

// The loops. What must stay true: counters advance only after the hooks of an iteration; a save point is
// reached only with no window open; an evaluation leaves training as it found it, also when it throws; `phase` names
// what comes next wherever a save point is reached.

namespace gantry {

namespace {

void move_to(Batch& batch, at::Device device) {
  if (device.is_cpu()) return;
  for (auto& [name, value] : batch.entries())
    if (auto* tensor = std::get_if<at::Tensor>(&value)) *tensor = tensor->to(device, /*non_blocking=*/true);
}

double output_weight(const Outputs& outputs, double otherwise) {
  const Value* value = outputs.find("weight");
  if (value == nullptr) return otherwise;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* count = std::get_if<int64_t>(value)) return static_cast<double>(*count);
  throw Error(
      "the model's output \"weight\" must be a number (double or int64_t), so that no step waits for the device");
}

std::string names_of(const Outputs& outputs) {
  std::vector<std::string> names;
  for (const auto& entry : outputs.entries()) names.push_back(entry.first);
  return names.empty() ? "none" : join(names, ", ");
}

/// What a dataset or a transform throws comes without the place in the run, which loader threads don't know.
bool next_batch(const Solver::Impl& s, Loader& loader, Batch& batch) {
  try {
    return loader.next(batch);
  } catch (const ComponentError& error) {
    ComponentError::Origin origin = error.origin();
    origin.mode = mode_name(s.mode());
    origin.iteration = s.total_iter[static_cast<int>(s.mode())];
    throw ComponentError(std::move(origin), error.cause());
  }
}

Scalars means_of(const Frame& frame) {
  Scalars values;
  for (const auto& [name, mean] : frame.means.entries()) values.set(name, mean.mean());
  return values;
}

/// Waits for the next batch. Returns false when a signal came meanwhile and `may_stop`.
template <class MayStop>
bool wait_for_data(Solver::Impl& s, Loader& loader, MayStop&& may_stop) {
  if (!s.armed) return true;
  while (!loader.wait(std::chrono::milliseconds(50))) {
    s.poll_interrupts();
    if (s.stop == Stop::pause && may_stop()) return false;
  }
  return true;
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
  if (s.interrupts == nullptr || !s.signals_wanted || data(Mode::train) == nullptr) return;
  s.interrupts->arm();
  s.armed = true;
  s.logger.info("signals armed: SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 save a checkpoint and pause the run");
}

void BaseSolver::resume() {
  Solver::Impl& s = solver_->impl();
  const auto& from = services_of(context_).resume;
  if (!from.has_value()) return;
  const bool model_alone = data(Mode::train) == nullptr || context_.dry_run();
  try {
    if (model_alone)
      load_model(read_checkpoint(*from, "model"));
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
  if (s.entry.has_value() && s.epoch > s.max_epochs)
    throw config_.error("MAX_EPOCHS", cat("MAX_EPOCHS is ", s.max_epochs, ", and ", from->path,
                                          " was saved within epoch ", s.epoch, ": raise MAX_EPOCHS"));
  if (const auto& restored = services_of(context_).restored) restored();
  const RngState random = RngState::now();
  for (auto& hook : s.hooks)
    if (hook->resume != nullptr) s.call(*hook, "on_resume", [&] { hook->resume->on_resume(*solver_); });
  random.restore();
  if (s.served == Stop::finish)
    s.logger.info("a hook had finished this run before it was saved: no more epochs");
  else if (!s.entry.has_value() && s.epoch >= s.max_epochs)
    s.logger.info(cat("all ", s.max_epochs, " epochs are trained already; a larger MAX_EPOCHS trains on"));
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

void Solver::Impl::poll_interrupts() {
  if (!armed || stop == Stop::pause) return;
  const char* signal = interrupts->pending();
  if (signal == nullptr) return;
  base.solver().request_stop(Stop::pause, signal);
  logger.info(cat(signal, ": saving a checkpoint and pausing, as soon as nothing is half done"));
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
  const CheckpointInfo saved = checkpoints.save(base.save_checkpoint(), std::move(info));
  save_whys.clear();
  last_checkpoint = saved.path;
  logger.info(cat("saved checkpoints/", saved.name, " (", saved.why, ")"));
  for (auto& hook : hooks)
    if (hook->checkpoint != nullptr)
      call(*hook, "checkpoint_saved", [&] { hook->checkpoint->checkpoint_saved(base.solver(), saved); });
}

void BaseSolver::save_point(SavePoint) {
  Solver::Impl& s = solver_->impl();
  s.poll_interrupts();
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
      while (entering || (s.epoch < s.max_epochs && !stopping())) {
        entering = false;
        solve_train();
      }
    } else if (data(Mode::eval) != nullptr) {
      solve_eval();
    }
    if (!s.pausing() && s.phase != Phase::finished) {
      s.phase = Phase::testing_due;
      if (data(Mode::test) != nullptr) solve_test();
      if (!s.pausing()) s.phase = Phase::finished;
    }
    if (s.armed) s.interrupts->ignore();
    s.exit_reason = s.pausing()                ? ExitReason::paused
                    : s.served == Stop::finish ? ExitReason::finish_requested
                                               : ExitReason::done;
  } catch (...) {
    s.exit_reason = ExitReason::failed;
    const std::string message = current_exception_message();
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
  PhaseScope phase(s, Mode::train, data(Mode::train)->batches_per_epoch());
  if (entry.has_value()) {
    s.frames.back().iter = entry->iter;
    s.frames.back().means = entry->means;
    s.frames.back().resumed = true;
  } else {
    before_epoch();
  }
  if (s.phase == Phase::iterating) {
    run_train();
    if (s.pausing()) return;
    const Interval interval = config_.get<Interval>("EVAL_INTERVAL");
    const bool last = s.epoch >= s.max_epochs || stopping();
    const bool due =
        data(Mode::eval) != nullptr && !interval.off() && (last || s.epoch % static_cast<int64_t>(interval.count) == 0);
    s.phase = due ? Phase::evaluating_due : Phase::pass_done;
  }
  if (s.phase == Phase::evaluating_due) {
    solve_eval();
    if (s.pausing()) return;
  }
  after_epoch();
  s.phase = Phase::epoch_done;
  save_point(SavePoint::after_epoch);
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
  const auto start = std::chrono::steady_clock::now();
  loader.begin(s.epoch, s.frames.back().iter);
  const auto between_windows = [&] { return s.engine == nullptr || !s.engine->window_open(); };
  Batch batch;
  while (!stopping()) {
    // While data is waited for, nothing has happened since the last save point.
    if (!wait_for_data(s, loader, between_windows)) {
      save_point(SavePoint::after_window);
      continue;
    }
    if (!next_batch(s, loader, batch)) break;
    Frame& frame = s.frames.back();
    frame.batch = &batch;
    frame.log_values.clear();
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
    if (between_windows()) save_point(SavePoint::after_window);
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
  at::NoGradGuard no_grad;
  s.model_flops = count_flops([&] { run_step_eval(one, 0, 0, context_.world().rank()); });
  return s.model_flops;
}

// --- evaluation and test ---

namespace {

/// Both run the same way; they differ in mode, data and the step that is called.
template <class Step>
void run_evaluation(BaseSolver& solver, Solver::Impl& s, Mode mode, Step&& step) {
  Loader& loader = *s.data[static_cast<int>(mode)];
  const at::Device device = s.context.device();
  const int rank = s.context.world().rank();
  int64_t& total_iter = s.total_iter[static_cast<int>(mode)];
  const auto metric = [&](std::size_t i, const char* point, auto&& f) {
    guarded(f, [&] { return s.origin(*s.metric_infos[i], {}, point); });
  };
  for (std::size_t i = 0; i < s.metrics.size(); ++i) metric(i, "reset", [&] { s.metrics[i]->reset(); });
  solver.before_all_iter();
  loader.begin(1);
  Batch batch;
  const auto always = [] { return true; };
  while (wait_for_data(s, loader, always) && next_batch(s, loader, batch)) {
    Frame& frame = s.frames.back();
    frame.batch = &batch;
    frame.log_values.clear();
    solver.before_iter();
    move_to(batch, device);
    frame.outputs = step(batch, frame.iter, total_iter, rank);
    frame.means.add(frame.outputs, output_weight(frame.outputs, batch.weight));
    for (std::size_t i = 0; i < s.metrics.size(); ++i)
      metric(i, "update", [&] { s.metrics[i]->update(batch, frame.outputs); });
    solver.after_iter();
    ++total_iter;
    ++frame.iter;
    frame.batch = nullptr;
    s.poll_interrupts();
    if (s.stop == Stop::pause) break;
  }
  loader.stop();
  if (s.stop == Stop::pause) {
    s.frames.back().abandoned = true;
    return;
  }
  Scalars& results = s.results[static_cast<int>(mode)];
  results = means_of(s.frames.back());
  for (std::size_t i = 0; i < s.metrics.size(); ++i) {
    metric(i, "compute", [&] {
      for (at::Tensor& sum : s.metrics[i]->sums()) s.context.world().all_reduce(sum, World::Reduce::sum);
      s.metrics[i]->compute(results);
    });
  }
  solver.after_all_iter();
}

/// The results of an evaluation are worth a line, whatever hooks there are.
void log_results(const Solver::Impl& s, Mode mode) {
  std::string line = s.phase_text(mode);
  for (const auto& [name, value] : s.results[static_cast<int>(mode)].entries())
    line += cat(" ", name, " ", short_number(value));
  s.logger.info(line);
}

}  // namespace

void BaseSolver::solve_eval() { solve_evaluation(Mode::eval, &BaseSolver::run_eval, SavePoint::after_evaluation); }
void BaseSolver::solve_test() { solve_evaluation(Mode::test, &BaseSolver::run_test, SavePoint::after_tests); }

void BaseSolver::solve_evaluation(Mode mode, void (BaseSolver::*run)(), SavePoint afterwards) {
  Solver::Impl& s = solver_->impl();
  // An evaluation that a pause cuts short has not been: it runs again from its start.
  State components_before;
  s.add_component_states(components_before);
  components_before = copied(components_before);
  const int64_t iterations_before = s.total_iter[static_cast<int>(mode)];
  bool abandoned = false;
  {
    EvaluationScope evaluation(*s.model);
    at::NoGradGuard no_grad;
    PhaseScope phase(s, mode, data(mode)->batches_per_epoch());
    before_epoch();
    (this->*run)();
    abandoned = s.frames.back().abandoned;
    if (!abandoned) after_epoch();
  }
  if (abandoned) {
    s.total_iter[static_cast<int>(mode)] = iterations_before;
    s.load_component_states(components_before);
    save_point(SavePoint::after_abandoned_evaluation);
    return;
  }
  log_results(s, mode);
  s.tell_evaluated(mode);
  if (s.phase == Phase::evaluating_due) s.phase = Phase::pass_done;
  if (s.phase == Phase::testing_due) s.phase = Phase::finished;
  save_point(afterwards);
}

void BaseSolver::run_eval() {
  run_evaluation(*this, solver_->impl(), Mode::eval,
                 [this](const Batch& b, int64_t i, int64_t t, int r) { return run_step_eval(b, i, t, r); });
}

void BaseSolver::run_test() {
  run_evaluation(*this, solver_->impl(), Mode::test,
                 [this](const Batch& b, int64_t i, int64_t t, int r) { return run_step_test(b, i, t, r); });
}

}  // namespace gantry
