#include "gantry/solver.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>

#include "evaluation_scope.h"
#include "gantry/text.h"
#include "loop_parts.h"

namespace gantry {

namespace {

const Batch& no_batch() {
  static const Batch empty;  // immutable: what is seen outside of the loops
  return empty;
}
const Fields& no_fields() {
  static const Fields empty;
  return empty;
}
const at::Tensor& no_tensor() {
  static const at::Tensor empty;
  return empty;
}

constexpr const char* kPhaseNames[] = {"iterating",  "interim_due", "evaluating_due", "pass_done",
                                       "epoch_done", "testing_due", "finished"};

}  // namespace

const char* phase_name(Phase phase) { return kPhaseNames[static_cast<int>(phase)]; }

std::optional<Phase> phase_named(std::string_view name) {
  const auto found = std::find(std::begin(kPhaseNames), std::end(kPhaseNames), name);
  if (found == std::end(kPhaseNames)) return std::nullopt;
  return static_cast<Phase>(found - std::begin(kPhaseNames));
}

Solver::Solver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Solver::~Solver() = default;

Mode Solver::mode() const { return impl_->mode(); }
int64_t Solver::epoch() const { return impl_->epoch; }
int64_t Solver::max_epochs() const { return impl_->max_epochs; }
int64_t Solver::iter() const { return impl_->frames.empty() ? 0 : impl_->frames.back().iter; }
int64_t Solver::total_iter() const { return impl_->total_iter[static_cast<int>(impl_->mode())]; }
int64_t Solver::iterations() const { return impl_->total_iter[static_cast<int>(Mode::train)]; }
int64_t Solver::epoch_max_iter() const { return impl_->frames.empty() ? 0 : impl_->frames.back().max_iter; }
int64_t Solver::max_steps() const { return impl_->max_steps; }
int64_t Solver::total_max_iter() const { return impl_->total_max_iter(); }
bool Solver::last_epoch() const { return impl_->last_epoch(); }

bool Solver::due(const Interval& interval) const {
  if (interval.off()) return false;
  const auto count = static_cast<int64_t>(interval.count);
  const Frame* frame = impl_->top();
  const bool in_iteration = frame != nullptr && frame->batch != nullptr;
  switch (impl_->unit_of(interval)) {
    case Interval::Unit::iterations:
      return in_iteration && (total_iter() + 1) % count == 0;
    case Interval::Unit::steps:
      return in_iteration && backward_step() && step() % count == 0;
    case Interval::Unit::epochs:
      return !in_iteration && epoch() % count == 0;
    default:
      return false;
  }
}
int64_t Solver::step() const { return impl_->engine == nullptr ? 0 : impl_->engine->steps(); }
bool Solver::backward_step() const { return impl_->engine != nullptr && impl_->engine->backward_step(); }
Phase Solver::phase() const { return impl_->phase; }
std::string Solver::phase_text() const { return impl_->phase_text(impl_->mode()); }
std::string Solver::Impl::phase_text(Mode mode) const {
  if (epoch == 0) return mode_name(mode);
  return max_epochs > 0 ? cat("epoch ", epoch, "/", max_epochs, " ", mode_name(mode))
                        : cat("epoch ", epoch, " ", mode_name(mode));
}
Interval::Unit Solver::Impl::unit_of(const Interval& interval) const {
  if (interval.unit != Interval::Unit::loop) return interval.unit;
  return max_steps > 0 ? Interval::Unit::iterations : Interval::Unit::epochs;
}

ExitReason Solver::exit_reason() const { return impl_->exit_reason; }

const Batch& Solver::batch() const {
  const Frame* frame = impl_->top();
  return frame == nullptr || frame->batch == nullptr ? no_batch() : *frame->batch;
}
const Outputs& Solver::outputs() const {
  const Frame* frame = impl_->top();
  return frame == nullptr ? no_fields() : frame->outputs;
}
const at::Tensor& Solver::loss() const { return impl_->engine == nullptr ? no_tensor() : impl_->engine->loss(); }

void Solver::log_value(std::string_view name, const at::Tensor& value) {
  if (!impl_->frames.empty()) impl_->frames.back().log_values.set(name, value.detach());
}
void Solver::log_value(std::string_view name, double value) {
  if (!impl_->frames.empty()) impl_->frames.back().log_values.set(name, value);
}
const Fields& Solver::log_values() const {
  const Frame* frame = impl_->top();
  return frame == nullptr ? no_fields() : frame->log_values;
}
Scalars Solver::collect_log_vars() const { return impl_->base.collect_log_vars(); }

at::Tensor Solver::gradient_norm() const {
  return impl_->engine == nullptr ? at::Tensor() : impl_->engine->gradient_norm();
}
at::Tensor Solver::step_skipped() const {
  return impl_->engine == nullptr ? at::Tensor() : impl_->engine->step_skipped();
}

const Scalars& Solver::metrics(Mode mode) const { return impl_->results[static_cast<int>(mode)]; }

torch::nn::Module* Solver::model() const { return impl_->model.get(); }
Optimizer* Solver::optimizer() const { return impl_->optimizer.get(); }
const LrScheduler* Solver::lr_scheduler() const { return impl_->lr_scheduler.get(); }
StepEngine* Solver::engine() const { return impl_->engine.get(); }

Probes& Solver::probes() const { return *impl_->probes; }
State Solver::evaluation_weights() const { return impl_->evaluation_weights(); }

Outputs Solver::evaluate(const Batch& batch, uint64_t seed) {
  Model& model = *impl_->model;
  const EvaluationScope evaluation(model);
  const at::NoGradGuard no_grad;
  const ProbesAside aside(model);
  at::manual_seed(seed);
  Batch here = batch;
  move_to(here, impl_->context.device());
  return impl_->base.run_step_eval(here, 0, 0, impl_->context.world().rank());
}

int64_t Solver::model_flops() const { return impl_->model_flops; }
int64_t Solver::register_flops() { return impl_->base.register_flops(batch()); }

void Solver::time_hooks() { impl_->takes_times = true; }
Scalars Solver::hook_seconds() const {
  Scalars seconds;
  for (const auto& hook : impl_->hooks) seconds.set(hook->label, std::chrono::duration<double>(hook->time).count());
  return seconds;
}

State Solver::state() const { return impl_->base.save_checkpoint(); }

std::string Solver::config_text() const { return services_of(impl_->context).config_text; }
const std::vector<std::pair<std::string, std::string>>& Solver::settings() const {
  return services_of(impl_->context).settings;
}

const std::string& Solver::work_dir() const { return impl_->context.work_dir(); }
const Logger& Solver::logger() const { return impl_->logger; }
World& Solver::world() const { return impl_->context.world(); }

const FieldMeans& Solver::phase_means() const {
  static const FieldMeans empty;  // immutable: what is seen outside of the loops
  const Frame* frame = impl_->top();
  return frame == nullptr ? empty : frame->means;
}
void Solver::report_best(std::string_view metric, double value) { impl_->best.set(metric, value); }

CheckpointStore& Solver::checkpoints() { return impl_->checkpoints; }
void Solver::draw_data_every(int64_t epochs) { impl_->draw_every = epochs; }
void Solver::pause_on_signals() { impl_->signals_wanted = true; }
void Solver::save_in_background() { impl_->background_save = std::make_unique<BackgroundSave>(impl_->checkpoints); }

void Solver::request_checkpoint(std::string_view why) {
  auto& whys = impl_->save_whys;
  if (std::find(whys.begin(), whys.end(), why) == whys.end()) whys.emplace_back(why);
}

Stop Solver::stop_requested() const { return impl_->stop; }

void Solver::request_stop(Stop how, std::string_view why) {
  impl_->finish_asked |= how == Stop::finish;
  // A pause outranks a finish: nothing that is asked for while pausing may complete the run.
  if (static_cast<int>(how) <= static_cast<int>(impl_->stop)) return;
  impl_->stop = how;
  impl_->stop_why = why;
}

}  // namespace gantry
