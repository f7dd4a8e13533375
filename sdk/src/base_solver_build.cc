#include <algorithm>
#include <cmath>
#include <map>

#include "gantry/dataset.h"
#include "gantry/name_pattern.h"
#include "gantry/pretrained.h"
#include "gantry/text.h"
#include "solver_impl.h"

// How a solver is put together; base_solver_loop.cc is how it runs.

namespace gantry {

namespace {

/// SCEPTER's keys that mean nothing here.
void declare_foreign(Parameters& p) {
  const char* precision = "training is in float32";
  p.foreign("USE_AMP", {"false"}, precision);
  p.foreign("DTYPE", {"float32"}, precision);
  p.foreign("TRAIN_PRECISION", {"32"}, precision);
  p.foreign("USE_SCALER", {"false"}, precision);
  p.foreign("ENABLE_GRADSCALER", {"false"}, precision);
  const char* one_device = "a model is whole on each device";
  p.foreign("USE_FSDP", {"false"}, one_device);
  p.foreign("USE_FAIRSCALE", {"false"}, one_device);
  for (const char* name : {"SHARDING_STRATEGY", "SHARDING_SIZE", "FSDP_REDUCE_DTYPE", "FSDP_BUFFER_DTYPE",
                           "FSDP_SHARD_MODULES", "USE_ORIG_PARAMS", "FIND_UNUSED_PARAMETERS"})
    p.foreign(name, {"*"}, one_device);
  p.foreign("SAVE_MODULES", {"*"}, "a checkpoint holds everything that a run needs to go on");
  p.foreign("TRAIN_MODULES", {"[model]"}, "say with FREEZE which parameters are trained");
  p.foreign("LOAD_MODEL_ONLY", {"false"},
            "MODEL.PRETRAINED_MODEL starts from a model alone, RESUME_FROM goes on with all");
  p.foreign("TUNER", {}, "train a part of the model with FREEZE");
  p.foreign("RESCALE_LR", {"false"}, "nothing changes a learning rate silently");
  p.foreign("CHANNELS_LAST", {"false"}, "tensors are laid out as the model makes them");
  p.foreign("LOG_TRAIN_NUM", {"*"}, "logs and probes have intervals of their own");
  p.foreign("IMAGE_LOG_STEP", {"*"}, "ProbeDataHook's PROB_INTERVAL says when pictures are written");
}

/// A few of them, for messages.
std::string parameter_names(const std::vector<NamedParameter>& parameters) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(parameters.size(), kShown); ++i) names.push_back(parameters[i].name);
  return cat(join(names, ", "), parameters.size() > kShown ? cat(", ... (", parameters.size(), " in all)") : "");
}

}  // namespace

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
  p.optional<std::string>("MODE")
      .choices({"train", "eval", "test"})
      .help(
          "train: training with what evaluations and tests there are; eval, test: one pass over that data alone, with "
          "the model of RESUME_FROM or PRETRAINED_MODEL. Default: what there is data for.");
  p.optional<int64_t>("MAX_EPOCHS")
      .at_least(1)
      .help("Training ends after this many epochs. This or MAX_STEPS is needed with TRAIN_DATA.");
  p.optional<int64_t>("MAX_STEPS")
      .at_least(1)
      .unit("iterations")
      .help("Training ends after this many iterations, however many passes over the data that takes.");
  p.add<int64_t>("NUM_FOLDS", 1)
      .at_least(1)
      .help("A pass over the training data has them this many times, and as many epochs.");
  p.optional<int64_t>("ACCU_STEP")
      .at_least(1)
      .unit("iterations")
      .help("Batches that make one optimizer step: another name for BackwardHook's ACCUMULATE_STEP.");
  p.add<Interval>("EVAL_INTERVAL", Interval{1, Interval::Unit::epochs})
      .unit("loop")
      .help("An evaluation every so often, and after the last epoch: 2, 500 iters, 500 steps, 2 epochs; <= 0: none.");
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
  p.add<std::string>("TEST_WITH", "last")
      .choices({"last", "best"})
      .help(
          "The model that is tested after training: as it is then, or that of the checkpoint that the link best "
          "names.");
  p.components<Hook>("HOOKS").help("Hooks that attend every mode.");
  p.components<Hook>("TRAIN_HOOKS").help("Hooks that attend training.");
  p.components<Hook>("EVAL_HOOKS").help("Hooks that attend evaluations.");
  p.components<Hook>("TEST_HOOKS").help("Hooks that attend tests.");
  p.component<Model>("MODEL").help("What is trained.");
  p.optional_component<Optimizer>("OPTIMIZER").help("How it is trained.");
  p.optional_component<LrScheduler>("LR_SCHEDULER").help("How the learning rate changes.");
  p.components<Metric>("METRICS").help("Figures over each whole evaluation and test.");
  p.components<FileSystem>("FILE_SYSTEM").help("Where paths of the configuration lead, beside this machine's files.");
  Parameters freeze;
  freeze.add<std::vector<std::string>>("FREEZE_PART", {})
      .help("Regular expressions looked for in the parameters' names: what matches is not trained.");
  freeze.add<std::vector<std::string>>("TRAIN_PART", {})
      .help("What matches one of these is trained all the same. Without FREEZE_PART: nothing else is.");
  p.section("FREEZE", std::move(freeze)).help("Which parameters are left as they are.");
  declare_foreign(p);
}

BaseSolver::BaseSolver(const Config& config, Context& context) : config_(config), context_(context) {
  auto impl = std::make_unique<Solver::Impl>(*this, context_);
  impl->max_epochs = config_.has("MAX_EPOCHS") ? config_.get<int64_t>("MAX_EPOCHS") : 0;
  impl->max_steps = config_.has("MAX_STEPS") ? config_.get<int64_t>("MAX_STEPS") : 0;
  impl->folds = config_.get<int64_t>("NUM_FOLDS");
  impl->eval_interval = config_.get<Interval>("EVAL_INTERVAL");
  if (impl->max_epochs > 0 && impl->max_steps > 0)
    throw config_.error("MAX_STEPS", cat("MAX_STEPS is ", impl->max_steps, " and MAX_EPOCHS ", impl->max_epochs,
                                         ": only one of them can limit the training"));
  if (context_.dry_run()) {
    impl->max_epochs = std::min<int64_t>(impl->max_epochs, 1);
    impl->max_steps = std::min<int64_t>(impl->max_steps, 2);
  }
  if (config_.has("TRAIN_DATA") && impl->max_epochs == 0 && impl->max_steps == 0)
    throw config_.error("MAX_EPOCHS", "MAX_EPOCHS or MAX_STEPS is needed with TRAIN_DATA: how long to train");
  if (!config_.has("TRAIN_DATA") && !config_.has("EVAL_DATA") && !config_.has("TEST_DATA"))
    throw config_.error("TRAIN_DATA",
                        "is not there, and there is nothing to run on: give TRAIN_DATA, EVAL_DATA or TEST_DATA");
  for (const Config& item : config_.get<std::vector<Config>>("FILE_SYSTEM"))
    services_of(context_).files.add(context_.build<FileSystem>(item));
  solver_ = std::make_unique<Solver>(std::move(impl));
}

BaseSolver::~BaseSolver() = default;

Loader* BaseSolver::data(Mode mode) { return solver_->impl().data[static_cast<int>(mode)].get(); }
std::vector<std::unique_ptr<Metric>>& BaseSolver::metrics() { return solver_->impl().metrics; }

std::shared_ptr<Model> BaseSolver::model() { return solver_->impl().model; }

void BaseSolver::set_model(std::shared_ptr<Model> model) {
  Solver::Impl& s = solver_->impl();
  s.model = std::move(model);
  if (s.model != nullptr) s.model->probes = s.probes;
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
  // A resumed run takes its model from the checkpoint.
  const Config model_config = config_.get<Config>("MODEL");
  if (!services_of(context_).resume.has_value() && model_config.has("PRETRAINED_MODEL"))
    load_pretrained(*model(), model_config, context_.files(), solver_->logger());
  freeze();
  construct_metrics();
  model_to_device();
  init_opti();
}

void BaseSolver::freeze() {
  if (!config_.has("FREEZE")) return;
  const Config section = config_.get<Config>("FREEZE");
  const std::vector<NamedParameter> parameters = named_parameters(*model());
  const auto apply = [&](const char* key, bool trained) {
    for (const NamePattern& pattern : name_patterns(section, key)) {
      bool used = false;
      for (const NamedParameter& parameter : parameters) {
        if (!pattern.found_in(parameter.name)) continue;
        used = true;
        at::Tensor(parameter.tensor).requires_grad_(trained);
      }
      if (!used)
        throw section.error(key, cat(key, ": no parameter of the model has '", pattern.text(),
                                     "' in its name; there are ", parameter_names(parameters)));
    }
  };
  if (section.get<std::vector<std::string>>("FREEZE_PART").empty())
    for (const NamedParameter& parameter : parameters) at::Tensor(parameter.tensor).requires_grad_(false);
  apply("FREEZE_PART", false);
  apply("TRAIN_PART", true);
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
      instance->evaluation_weights = dynamic_cast<EvaluationWeights*>(instance->hook.get());
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
    set_data(mode, make_loader(section, context_, training, limit, training ? config_.get<int64_t>("NUM_FOLDS") : 1));
  }
  const Solver::Impl& s = solver_->impl();
  if (const Loader* loader = data(Mode::train); loader != nullptr && s.epoch_range(s.folds).batches < 1)
    throw config_.error("NUM_FOLDS", cat("NUM_FOLDS is ", s.folds, ", and a pass of so many folds has ",
                                         loader->batches_per_epoch(), " batches: too few for an epoch each"));
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
  s.closure_optimizer = dynamic_cast<ClosureOptimizer*>(s.optimizer.get());
  std::vector<Slot> slots;
  std::vector<int64_t> used(s.optimizer->groups().size());
  const std::size_t states = s.optimizer->state_names().size();
  for (NamedParameter& parameter : named_parameters(*model())) {
    if (!parameter.tensor.requires_grad()) continue;
    Slot slot;
    slot.name = std::move(parameter.name);
    slot.group = s.optimizer->group_of(slot.name);
    ++used[static_cast<std::size_t>(slot.group)];
    slot.parameter = std::move(parameter.tensor);
    slot.state.resize(states);
    slots.push_back(std::move(slot));
  }
  if (slots.empty()) throw config_.error("MODEL", "has no parameter to train; leave OPTIMIZER out to run it as it is");
  for (std::size_t g = 1; g < used.size(); ++g)
    if (used[g] == 0)
      throw config.get<std::vector<Config>>("PARAM_GROUPS")[g - 1].error(
          "MATCH", cat("matches nothing: no parameter that is trained, and in no group before, has '",
                       s.optimizer->groups()[g].name(), "' in its name; there are ",
                       parameter_names(named_parameters(*model()))));
  s.engine = std::make_unique<StepEngine>(*s.optimizer, std::move(slots), make_local_sync(), s);
  const std::string nonfinite = config_.get<std::string>("NONFINITE");
  s.engine->set_nonfinite(nonfinite == "error"  ? StepEngine::NonFinite::error
                          : nonfinite == "skip" ? StepEngine::NonFinite::skip
                                                : StepEngine::NonFinite::ignore);
  if (config_.has("ACCU_STEP")) s.engine->set_accumulate_step(config_.get<int64_t>("ACCU_STEP"));
  if (config_.has("LR_SCHEDULER")) {
    const Config schedule = config_.get<Config>("LR_SCHEDULER");
    s.scheduler_info = &services_of(context_).info("lr_scheduler", schedule);
    s.lr_scheduler = context_.build<LrScheduler>(schedule);
    s.schedule_counts_epochs = schedule.has("UNIT") ? schedule.get<std::string>("UNIT") == "epoch"
                                                    : s.max_steps == 0 && s.lr_scheduler->counts_epochs_by_default();
    if (dynamic_cast<EvalObserver*>(s.lr_scheduler.get()) != nullptr && data(Mode::eval) == nullptr)
      throw config_.error("LR_SCHEDULER", cat("names ", schedule.name(),
                                              ", which goes by evaluations, and there is no "
                                              "EVAL_DATA"));
    s.momentum_schedule = dynamic_cast<MomentumSchedule*>(s.lr_scheduler.get());
    if (s.momentum_schedule != nullptr && std::isnan(s.momentum_schedule->momentum({}, 0)))
      s.momentum_schedule = nullptr;
    if (s.momentum_schedule != nullptr && std::isnan(s.optimizer->groups().front().momentum()))
      throw config_.error("LR_SCHEDULER",
                          cat(schedule.name(), " cycles the momentum, and optimizer ", config.name(),
                              " has none as it is configured: give it one, or set CYCLE_MOMENTUM: false"));
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
