#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <iterator>

#include "gantry/text.h"
#include "ordered_paths.h"
#include "rng_state.h"
#include "solver_impl.h"

// What a run needs to go on, and how it is taken back. The paths are a file format:
//   model/<parameter or buffer>                  optimizer/<parameter>/<state name>
//   trainer/{epoch,step,phase,finish,cursor}     trainer/total_iter/<mode>     trainer/lr/<group>
//   trainer/means/<index>/<name>/...             of the running epoch, so far
//   trainer/results/<mode>/<index>/<name>        the latest metrics
//   data/{seed,batch_size,samples}               what the cursor means; data/{dataset,sampler}/{version,state/...}
//   optimizer_whole/{version,state/...}          of an optimizer with state that belongs to no parameter
//   scheduler/{version,state/...}                metrics/<index>/...    hooks/<label>/...
//   rng/<0 for the CPU, 1... for each GPU>

namespace gantry {

namespace {

std::string rng_path(std::size_t index) { return cat("rng/", index); }

std::string results_path(Mode mode) { return cat("trainer/results/", mode_name(mode)); }

State scalars_state(const Scalars& scalars) {
  State state;
  for (const auto& [name, value] : scalars.entries())
    state.set_double(cat(order_prefix(state.leaves().size()), name), value);
  return state;
}

Scalars scalars_from(const State& state) {
  Scalars scalars;
  for (const std::string& path : ordered_paths(state)) scalars.set(without_order_prefix(path), state.number(path));
  return scalars;
}

/// The leaves under "prefix/", with their whole paths.
State part(const State& state, const char* prefix) {
  State result;
  result.merge(prefix, state.child(prefix));
  return result;
}

void append(std::vector<std::string>& all, std::vector<std::string> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void add_stateful(State& state, const std::string& path, const Stateful& component) {
  state.set_int(path + "/version", component.state_version());
  state.merge(path + "/state", component.state());
}

void load_stateful(const State& state, const std::string& path, Stateful& component) {
  const int64_t version = state.integer(path + "/version");
  if (version < 1 || version > component.state_version())
    throw Error(cat(path, "/version is ", version, " in the checkpoint, and this plugin knows versions up to ",
                    component.state_version(), ": use the plugin that saved it, or a newer one"));
  component.load_state(state.child(path + "/state"), static_cast<int>(version));
}

/// Collects what does not fit in place of throwing at the first.
class Reader {
 public:
  Reader(const State& state, std::vector<std::string>& problems) : state_(state), problems_(problems) {}
  int64_t integer(const std::string& path) {
    return read(int64_t{0}, [&] { return state_.integer(path); });
  }
  std::string text(const std::string& path) {
    return read(std::string(), [&] { return state_.text(path); });
  }

 private:
  template <class T, class F>
  T read(T otherwise, F&& f) {
    try {
      return f();
    } catch (const Error& error) {
      problems_.push_back(error.what());
      return otherwise;
    }
  }
  const State& state_;
  std::vector<std::string>& problems_;
};

void check_fits(const std::vector<std::string>& differences) {
  if (!differences.empty())
    throw Error(cat("the checkpoint does not fit; nothing of it was taken:\n  ", join(differences, "\n  ")));
}

}  // namespace

State model_state(const Model& model) {
  State state;
  for (const NamedParameter& parameter : named_parameters(model)) state.set(parameter.name, parameter.tensor.detach());
  for (const NamedParameter& buffer : named_buffers(model)) state.set(buffer.name, buffer.tensor.detach());
  return state;
}

void copy_into(const State& targets, const State& from) {
  at::NoGradGuard no_grad;
  for (const State::Leaf& leaf : targets.leaves()) {
    at::Tensor target = leaf.value;
    target.copy_(from.tensor(leaf.path));
  }
}

State copied(const State& state) {
  State copy;
  for (const State::Leaf& leaf : state.leaves()) copy.set(leaf.path, leaf.value.detach().clone());
  return copy;
}

State Solver::Impl::training_data_state() const {
  State state;
  Loader& loader = *data[static_cast<int>(Mode::train)];
  if (const auto* dataset = dynamic_cast<const Stateful*>(&loader.dataset())) add_stateful(state, "dataset", *dataset);
  if (const auto* sampler = dynamic_cast<const Stateful*>(&loader.sampler())) add_stateful(state, "sampler", *sampler);
  return copied(state);
}

template <class F>
void Solver::Impl::each_stateful(const char* point, F&& f) {
  if (auto* whole = dynamic_cast<Stateful*>(optimizer.get()))
    guarded([&] { f("optimizer_whole", *whole); }, [&] { return origin(*optimizer_info, {}, point); });
  if (auto* schedule = dynamic_cast<Stateful*>(lr_scheduler.get()))
    guarded([&] { f("scheduler", *schedule); }, [&] { return origin(*scheduler_info, {}, point); });
  for (std::size_t i = 0; i < metrics.size(); ++i)
    if (auto* metric = dynamic_cast<Stateful*>(metrics[i].get()))
      guarded([&] { f(cat("metrics/", i), *metric); }, [&] { return origin(*metric_infos[i], {}, point); });
  for (const auto& hook : hooks)
    if (hook->stateful != nullptr) call(*hook, point, [&] { f(cat("hooks/", hook->label), *hook->stateful); });
}

void Solver::Impl::add_component_states(State& state) {
  each_stateful("state", [&](const std::string& path, Stateful& component) { add_stateful(state, path, component); });
}

void Solver::Impl::load_component_states(const State& states) {
  each_stateful("load_state", [&](const std::string& path, Stateful& component) {
    if (states.has(path + "/version"))
      load_stateful(states, path, component);
    else
      logger.warn(cat("the checkpoint has no ", path, ": that starts afresh"));
  });
}

State BaseSolver::save_checkpoint() {
  Solver::Impl& s = solver_->impl();
  State state;
  state.merge("model", model_state(*s.model));
  if (s.engine != nullptr) {
    const std::vector<std::string> names = s.optimizer->state_names();
    for (const Slot& slot : s.engine->slots())
      for (std::size_t i = 0; i < names.size(); ++i)
        if (slot.state[i].defined()) state.set(cat("optimizer/", slot.name, "/", names[i]), slot.state[i]);
    state.set_int("trainer/step", s.engine->steps());
    for (std::size_t g = 0; g < s.optimizer->groups().size(); ++g)
      state.set_double(cat("trainer/lr/", g), s.optimizer->groups()[g].lr());
  }
  state.set_int("trainer/epoch", s.epoch);
  state.set_text("trainer/phase", phase_name(s.phase));
  state.set_int("trainer/finish", s.finish_asked);
  for (Mode mode : kModes)
    state.set_int(cat("trainer/total_iter/", mode_name(mode)), s.total_iter[static_cast<int>(mode)]);
  for (Mode mode : kModes) state.merge(results_path(mode), scalars_state(s.results[static_cast<int>(mode)]));

  if (Loader* loader = data(Mode::train)) {
    const Frame* frame = s.frames.empty() ? nullptr : &s.frames.front();
    const bool inside = frame != nullptr && frame->mode == Mode::train && s.phase != Phase::epoch_done;
    if (frame == nullptr && s.entry.has_value()) {  // on_resume: what was restored, and not yet entered
      state.set_int("trainer/cursor", s.entry->iter);
      state.merge("trainer/means", s.entry->means.state());
    } else {
      state.set_int("trainer/cursor", inside ? frame->iter : 0);
      if (inside) state.merge("trainer/means", frame->means.state());
    }
    state.set_int("data/seed", static_cast<int64_t>(context_.seed()));
    state.set_int("data/batch_size", loader->batch_size());
    state.set_int("data/samples", loader->samples_per_epoch());
    // Once the pass is over, a resume does not begin it again.
    const bool in_pass = s.phase == Phase::iterating || s.phase == Phase::interim_due;
    state.merge("data", inside && in_pass ? s.data_state : s.training_data_state());
  }
  s.add_component_states(state);
  const RngState rng = RngState::now();
  for (std::size_t i = 0; i < rng.tensors().size(); ++i) state.set(rng_path(i), rng.tensors()[i]);
  return state;
}

void BaseSolver::load_model(const State& state) {
  State here;
  here.merge("model", model_state(*solver_->impl().model));
  check_fits(state_differences(part(state, "model"), here));
  copy_into(here, state);
}

void BaseSolver::load_checkpoint(const State& state) {
  Solver::Impl& s = solver_->impl();
  State here;
  here.merge("model", model_state(*s.model));
  std::vector<std::string> differences = state_differences(part(state, "model"), here);

  struct Target {
    at::Tensor* place;
    at::Tensor value;
  };
  std::vector<Target> optimizer_state;
  if (s.engine != nullptr) {
    const State saved = part(state, "optimizer");
    const std::vector<std::string> names = s.optimizer->state_names();
    State expected;  // before a parameter's first step nothing says what its state will be but the shape
    for (Slot& slot : s.engine->slots()) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string path = cat("optimizer/", slot.name, "/", names[i]);
        if (!saved.has(path)) {
          optimizer_state.push_back({&slot.state[i], at::Tensor()});
          continue;
        }
        const at::Tensor& value = saved.tensor(path);
        const auto dtype = slot.state[i].defined() ? slot.state[i].scalar_type() : value.scalar_type();
        const bool counter = value.dim() == 0;
        expected.set(path, at::empty(counter ? at::IntArrayRef() : slot.parameter.sizes(),
                                     at::TensorOptions().dtype(dtype).device(at::kMeta)));
        optimizer_state.push_back({&slot.state[i], value});
      }
    }
    append(differences, state_differences(saved, expected));
  }

  Reader reader(state, differences);
  const int64_t step = s.engine != nullptr ? reader.integer("trainer/step") : 0;
  const int64_t epoch = reader.integer("trainer/epoch");
  const std::string phase_text = reader.text("trainer/phase");
  const std::optional<Phase> phase = phase_named(phase_text);
  if (!phase.has_value() && !phase_text.empty())
    differences.push_back(cat("trainer/phase is '", phase_text, "', which this version does not know"));
  const bool finish = reader.integer("trainer/finish") != 0;
  std::array<int64_t, 3> total_iter{};
  for (Mode mode : kModes)
    total_iter[static_cast<int>(mode)] = reader.integer(cat("trainer/total_iter/", mode_name(mode)));
  Solver::Impl::Entry entry;
  if (Loader* loader = data(Mode::train)) {
    entry.iter = reader.integer("trainer/cursor");
    if (phase == Phase::iterating || phase == Phase::interim_due) {
      // Halfway through an epoch, the cursor means something in one order of the samples alone.
      const auto same = [&](const char* path, int64_t mine, const char* what) {
        const int64_t saved = reader.integer(path);
        if (saved != mine)
          differences.push_back(cat(path, ": ", saved, " in the checkpoint, which was saved within epoch ", epoch, "; ",
                                    mine, " here. Give ", what, " its old value, or go on from the end of an epoch"));
      };
      same("data/seed", static_cast<int64_t>(context_.seed()), "ENV.SEED");
      same("data/batch_size", loader->batch_size(), "TRAIN_DATA.BATCH_SIZE");
      same("data/samples", loader->samples_per_epoch(), "TRAIN_DATA");
      const int64_t batches = epoch > 0 ? s.epoch_range(epoch).batches : 0;
      if (entry.iter < 0 || entry.iter > batches)
        differences.push_back(cat("trainer/cursor: the checkpoint was saved after ", entry.iter,
                                  " iterations of epoch ", epoch, ", which has ", batches, " here"));
    }
  }

  const RngState current = RngState::now();
  State generators_here, generators_saved;  // a machine may have fewer GPUs, or more
  std::vector<at::Tensor> generators;
  for (std::size_t i = 0; i < current.tensors().size(); ++i) {
    const std::string path = rng_path(i);
    if (i > 0 && !state.has(path)) break;
    generators_here.set(path, current.tensors()[i]);
    if (!state.has(path)) continue;
    generators_saved.set(path, state.tensor(path));
    generators.push_back(state.tensor(path).cpu());
  }
  append(differences, state_differences(generators_saved, generators_here));
  check_fits(differences);

  // Everything fits: from here on nothing is refused but by a component.
  copy_into(here, state);
  for (Target& target : optimizer_state)
    *target.place = target.value.defined() ? target.value.to(context_.device(), /*non_blocking=*/false, /*copy=*/true)
                                           : at::Tensor();
  if (s.engine != nullptr) {
    s.engine->set_steps(step);
    // Of the latest step: the next one sets its own; what logs print until then is this.
    for (std::size_t g = 0; g < s.optimizer->groups().size(); ++g)
      if (const std::string path = cat("trainer/lr/", g); state.has(path))
        s.optimizer->groups()[g].set_lr(state.number(path));
  }
  s.epoch = epoch;
  s.phase = *phase;
  s.finish_asked = finish;
  s.stop = s.served = finish ? Stop::finish : Stop::none;
  s.total_iter = total_iter;
  for (Mode mode : kModes) s.results[static_cast<int>(mode)] = scalars_from(state.child(results_path(mode)));
  s.entry.reset();
  if (Loader* loader = data(Mode::train)) {
    if (*phase == Phase::iterating || *phase == Phase::interim_due || *phase == Phase::evaluating_due ||
        *phase == Phase::pass_done) {
      entry.means.load_state(state.child("trainer/means"));
      s.entry = std::move(entry);
    }
    const auto load = [&](const char* path, auto& component) {
      auto* stateful = dynamic_cast<Stateful*>(&component);
      if (stateful != nullptr && state.has(cat(path, "/version"))) load_stateful(state, path, *stateful);
    };
    load("data/dataset", loader->dataset());
    load("data/sampler", loader->sampler());
  }
  s.load_component_states(state);
  RngState(std::move(generators)).restore();
}

}  // namespace gantry
