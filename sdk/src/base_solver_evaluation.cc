#include <ATen/core/grad_mode.h>

#include "evaluation_scope.h"
#include "gantry/text.h"
#include "loop_parts.h"

// Evaluation and test. What must stay true: they leave training as they found it, also when they throw.

namespace gantry {

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
  s.probes->clear();
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

/// Other weights in the model, until its own are put back, also by an exception.
class WeightsScope {
 public:
  explicit WeightsScope(const Model& model) : model_(model) {}
  ~WeightsScope() {
    if (!own_.empty()) copy_into(targets_, own_);
  }
  WeightsScope(const WeightsScope&) = delete;
  WeightsScope& operator=(const WeightsScope&) = delete;

  void put(const State& weights) {
    if (weights.empty()) return;
    const State all = model_state(model_);
    for (const State::Leaf& leaf : weights.leaves()) targets_.set(leaf.path, all.tensor(leaf.path));
    own_ = copied(targets_);
    copy_into(targets_, weights);
  }

 private:
  const Model& model_;
  State targets_, own_;
};

/// The results of an evaluation are worth a line, whatever hooks there are.
void log_results(const Solver::Impl& s, Mode mode) {
  std::string line = s.phase_text(mode);
  for (const auto& [name, value] : s.results[static_cast<int>(mode)].entries())
    line += cat(" ", name, " ", short_number(value));
  s.logger.info(line);
}

}  // namespace

void Solver::Impl::load_evaluation_weights(const State& saved) {
  for (auto& hook : hooks) {
    if (hook->evaluation_weights == nullptr || hook->stateful == nullptr) continue;
    const std::string path = cat("hooks/", hook->label);
    if (!saved.has(path + "/version"))
      throw Error(cat("the checkpoint has no weights of ", hook->label, ": it was saved without that hook"));
    call(*hook, "load_state", [&] {
      hook->stateful->load_state(saved.child(path + "/state"), static_cast<int>(saved.integer(path + "/version")));
    });
  }
}

/// What evaluations ran with when the best checkpoint was saved. The hooks are left as they were.
State Solver::Impl::best_weights(const Config& config) {
  const std::string best = checkpoints.linked("best");
  if (best.empty())
    throw config.error(
        "TEST_WITH", cat("TEST_WITH is best, and no checkpoint in ", checkpoints.directory(),
                         " is called best: CheckpointHook needs SAVE_BEST_BY, and EVAL_DATA the metric that it names"));
  const CheckpointInfo info = read_checkpoint_info(cat(checkpoints.directory(), "/", best));
  logger.info(cat("testing with checkpoints/", best));
  const State saved = read_checkpoint(info);
  State states;
  add_component_states(states);
  states = copied(states);
  load_evaluation_weights(saved);
  State weights = saved.child("model");
  State averaged = copied(evaluation_weights());
  load_component_states(states);
  State all;
  for (const State::Leaf& leaf : weights.leaves())
    all.set(leaf.path, averaged.has(leaf.path) ? averaged.tensor(leaf.path) : leaf.value);
  return all;
}

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
    WeightsScope weights(*s.model);
    if (mode == Mode::test && data(Mode::train) != nullptr && config_.get<std::string>("TEST_WITH") == "best")
      weights.put(s.best_weights(config_));
    else
      weights.put(s.evaluation_weights());
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
  if (s.phase == Phase::interim_due) s.phase = Phase::iterating;
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
