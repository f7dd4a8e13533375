#include <algorithm>
#include <map>

#include "gantry/dataset.h"
#include "gantry/text.h"
#include "solver_impl.h"

// How a solver is put together; base_solver_loop.cc is how it runs.

namespace gantry {

void BaseSolver::declare(Parameters& p) {
  p.add<std::string>("WORK_DIR")
      .not_empty()
      .no_effect_on_result()
      .help("Where everything that the run writes goes; relative to the current directory.");
  p.add<std::string>("LOG_FILE", "log.txt").no_effect_on_result().help("Name of the log file, in WORK_DIR.");
  p.optional<std::string>("RESUME_FROM")
      .not_empty()
      .no_effect_on_result()
      .help(
          "The checkpoint to go on from, a path; or auto: the newest valid one in WORK_DIR, none at all being a start "
          "afresh. Without TRAIN_DATA only the model is taken.");
  p.optional<int64_t>("MAX_EPOCHS").at_least(1).help("Training ends after this many epochs. Needed with TRAIN_DATA.");
  p.add<Interval>("EVAL_INTERVAL", Interval{1, Interval::Unit::epochs})
      .unit("epochs")
      .help("An evaluation after every so many epochs, and after the last one; <= 0: none.");
  p.add<int64_t>("LIMIT_TRAIN_BATCHES", -1).help("At most so many batches of an epoch; <= 0: all.");
  p.add<int64_t>("LIMIT_EVAL_BATCHES", -1).help("At most so many batches of an evaluation or test; <= 0: all.");
  p.add<std::string>("NONFINITE", "error")
      .choices({"error", "skip", "ignore"})
      .help(
          "What a training loss that is NaN or infinite leads to: the end of the run, before it is used; that "
          "update left out; nothing.");
  p.optional_component<Dataset>("TRAIN_DATA").help("What is trained on.");
  p.optional_component<Dataset>("EVAL_DATA").help("What is evaluated on, at EVAL_INTERVAL.");
  p.optional_component<Dataset>("TEST_DATA").help("What is tested on, once, after training.");
  p.components<Hook>("HOOKS").help("Hooks that attend every mode.");
  p.components<Hook>("TRAIN_HOOKS").help("Hooks that attend training.");
  p.components<Hook>("EVAL_HOOKS").help("Hooks that attend evaluations.");
  p.components<Hook>("TEST_HOOKS").help("Hooks that attend tests.");
  p.component<Model>("MODEL").help("What is trained.");
  p.optional_component<Optimizer>("OPTIMIZER").help("How it is trained.");
  p.optional_component<LrScheduler>("LR_SCHEDULER").help("How the learning rate changes.");
  p.components<Metric>("METRICS").help("Figures over each whole evaluation and test.");
}

BaseSolver::BaseSolver(const Config& config, Context& context) : config_(config), context_(context) {
  auto impl = std::make_unique<Solver::Impl>(*this, context_);
  impl->max_epochs = config_.has("MAX_EPOCHS") ? config_.get<int64_t>("MAX_EPOCHS") : 0;
  if (context_.dry_run()) impl->max_epochs = std::min<int64_t>(impl->max_epochs, 1);
  const bool trains = config_.has("TRAIN_DATA");
  if (trains && impl->max_epochs == 0)
    throw config_.error("MAX_EPOCHS", "MAX_EPOCHS is needed with TRAIN_DATA: how many epochs to train");
  if (!trains && !config_.has("EVAL_DATA") && !config_.has("TEST_DATA"))
    throw config_.error("TRAIN_DATA", "there is nothing to run on: give TRAIN_DATA, EVAL_DATA or TEST_DATA");
  if (config_.get<Interval>("EVAL_INTERVAL").unit != Interval::Unit::epochs)
    throw config_.error("EVAL_INTERVAL", "EVAL_INTERVAL counts epochs in a run that MAX_EPOCHS limits: write a number");
  solver_ = std::make_unique<Solver>(std::move(impl));
}

BaseSolver::~BaseSolver() = default;

Loader* BaseSolver::data(Mode mode) { return solver_->impl().data[static_cast<int>(mode)].get(); }
std::vector<std::unique_ptr<Metric>>& BaseSolver::metrics() { return solver_->impl().metrics; }

std::shared_ptr<Model> BaseSolver::model() { return solver_->impl().model; }

void BaseSolver::set_model(std::shared_ptr<Model> model) {
  Solver::Impl& s = solver_->impl();
  s.model = std::move(model);
  if (s.model_info != nullptr) return;
  s.solvers_own_model = services_of(context_).info("solver", config_);
  s.solvers_own_model.kind = "model";
  s.solvers_own_model.name = "of solver " + config_.name();
  s.model_info = &s.solvers_own_model;
}

void BaseSolver::set_data(Mode mode, std::unique_ptr<Loader> loader) {
  solver_->impl().data[static_cast<int>(mode)] = std::move(loader);
}

void BaseSolver::set_up_pre() { construct_hook(); }

void BaseSolver::set_up() {
  construct_data();
  construct_model();
  if (model() == nullptr)
    throw Error(cat("solver ", config_.name(), " built no model: construct_model must call set_model"));
  construct_metrics();
  model_to_device();
  init_opti();
}

void BaseSolver::construct_hook() {
  Solver::Impl& s = solver_->impl();
  const std::vector<std::pair<const char*, std::vector<Mode>>> lists = {
      {"HOOKS", {Mode::train, Mode::eval, Mode::test}},
      {"TRAIN_HOOKS", {Mode::train}},
      {"EVAL_HOOKS", {Mode::eval}},
      {"TEST_HOOKS", {Mode::test}}};
  std::map<std::string, int> seen;
  for (const auto& [key, modes] : lists) {
    for (const Config& item : config_.get<std::vector<Config>>(key)) {
      auto instance = std::make_unique<HookInstance>();
      instance->info = &services_of(context_).info("hook", item);
      instance->hook = context_.build<Hook>(item);
      instance->where = item.where();
      instance->priority = item.get<int64_t>("PRIORITY");
      const int count = ++seen[item.name()];
      instance->label = count == 1 ? item.name() : item.name() + "#" + std::to_string(count);
      instance->gradient = dynamic_cast<GradientHook*>(instance->hook.get());
      instance->eval = dynamic_cast<EvalObserver*>(instance->hook.get());
      instance->exception = dynamic_cast<ExceptionObserver*>(instance->hook.get());
      instance->stateful = dynamic_cast<Stateful*>(instance->hook.get());
      instance->resume = dynamic_cast<ResumeObserver*>(instance->hook.get());
      instance->checkpoint = dynamic_cast<CheckpointObserver*>(instance->hook.get());
      instance->learning_rate = dynamic_cast<LearningRateHook*>(instance->hook.get());
      for (Mode mode : modes) s.hooks_of[static_cast<int>(mode)].push_back(instance.get());
      s.hooks.push_back(std::move(instance));
    }
  }
  const auto by_priority = [](const auto& a, const auto& b) { return a->priority < b->priority; };
  std::stable_sort(s.hooks.begin(), s.hooks.end(), by_priority);
  for (auto& list : s.hooks_of) std::stable_sort(list.begin(), list.end(), by_priority);
  for (auto& hook : s.hooks) {
    if (hook->learning_rate == nullptr) continue;
    s.learning_rate_hooks.push_back(hook.get());
    s.fractional_epochs |= hook->learning_rate->fractional_epochs();
  }
}

void BaseSolver::construct_data() {
  const std::vector<std::pair<const char*, Mode>> sections = {
      {"TRAIN_DATA", Mode::train}, {"EVAL_DATA", Mode::eval}, {"TEST_DATA", Mode::test}};
  for (const auto& [key, mode] : sections) {
    if (!config_.has(key)) continue;
    const bool training = mode == Mode::train;
    int64_t limit = config_.get<int64_t>(training ? "LIMIT_TRAIN_BATCHES" : "LIMIT_EVAL_BATCHES");
    if (context_.dry_run()) limit = 2;
    Config section = config_.get<Config>(key);
    if (!section.has("MODE")) section = section.with("MODE", Config::scalar(mode_name(mode), section.where()));
    set_data(mode, make_loader(section, context_, training, limit));
  }
}

void BaseSolver::construct_model() {
  const Config config = config_.get<Config>("MODEL");
  Solver::Impl& s = solver_->impl();
  s.model_info = &services_of(context_).info("model", config);
  set_model(context_.build<Model>(config));
}

void BaseSolver::construct_metrics() {
  Solver::Impl& s = solver_->impl();
  for (const Config& item : config_.get<std::vector<Config>>("METRICS")) {
    s.metric_infos.push_back(&services_of(context_).info("metric", item));
    s.metrics.push_back(context_.build<Metric>(item));
  }
}

void BaseSolver::model_to_device() { model()->to(context_.device()); }

void BaseSolver::init_opti() {
  Solver::Impl& s = solver_->impl();
  if (!config_.has("OPTIMIZER") || data(Mode::train) == nullptr) return;
  const Config config = config_.get<Config>("OPTIMIZER");
  s.optimizer_info = &services_of(context_).info("optimizer", config);
  s.optimizer = context_.build<Optimizer>(config);
  std::vector<Slot> slots;
  const std::size_t states = s.optimizer->state_names().size();
  for (NamedParameter& parameter : named_parameters(*model())) {
    if (!parameter.tensor.requires_grad()) continue;
    Slot slot;
    slot.name = std::move(parameter.name);
    slot.parameter = std::move(parameter.tensor);
    slot.state.resize(states);
    slots.push_back(std::move(slot));
  }
  if (slots.empty())
    throw config_.error("MODEL", "the model has no parameter to train; leave OPTIMIZER out to run it as it is");
  s.engine = std::make_unique<StepEngine>(*s.optimizer, std::move(slots), make_local_sync(), s);
  const std::string nonfinite = config_.get<std::string>("NONFINITE");
  s.engine->set_nonfinite(nonfinite == "error"  ? StepEngine::NonFinite::error
                          : nonfinite == "skip" ? StepEngine::NonFinite::skip
                                                : StepEngine::NonFinite::ignore);
  if (config_.has("LR_SCHEDULER")) {
    const Config schedule = config_.get<Config>("LR_SCHEDULER");
    s.scheduler_info = &services_of(context_).info("lr_scheduler", schedule);
    s.lr_scheduler = context_.build<LrScheduler>(schedule);
    s.schedule_counts_epochs = schedule.has("UNIT") ? schedule.get<std::string>("UNIT") == "epoch"
                                                    : s.lr_scheduler->counts_epochs_by_default();
  }
}

void BaseSolver::reserved_0() {}
void BaseSolver::reserved_1() {}
void BaseSolver::reserved_2() {}
void BaseSolver::reserved_3() {}
void BaseSolver::reserved_4() {}
void BaseSolver::reserved_5() {}
void BaseSolver::reserved_6() {}
void BaseSolver::reserved_7() {}

}  // namespace gantry
