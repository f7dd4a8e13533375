#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <iterator>

#include "gantry/text.h"
#include "rng_state.h"
#include "solver_impl.h"

// What a run needs to go on, and how it is taken back. The paths are a file format:
//   model/<parameter or buffer>              optimizer/<parameter>/<state name>
//   trainer/{epoch,step,phase}, trainer/total_iter/<mode>
//   rng/<0 for the CPU, 1... for each GPU>   hooks/<label>/{version,state/...}

namespace gantry {

namespace {

std::string rng_path(std::size_t index) { return cat("rng/", index); }

State model_state(const Model& model) {
  State state;
  for (const NamedParameter& parameter : named_parameters(model)) state.set(parameter.name, parameter.tensor.detach());
  for (const NamedParameter& buffer : named_buffers(model)) state.set(buffer.name, buffer.tensor.detach());
  return state;
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

}  // namespace

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
  }
  state.set_int("trainer/epoch", s.epoch);
  state.set_int("trainer/phase", static_cast<int64_t>(s.phase));
  for (Mode mode : {Mode::train, Mode::eval, Mode::test})
    state.set_int(cat("trainer/total_iter/", mode_name(mode)), s.total_iter[static_cast<int>(mode)]);
  for (const auto& hook : s.hooks) {
    if (hook->stateful == nullptr) continue;
    s.call(*hook, "state", [&] {
      state.set_int(cat("hooks/", hook->label, "/version"), hook->stateful->state_version());
      state.merge(cat("hooks/", hook->label, "/state"), hook->stateful->state());
    });
  }
  const RngState rng = RngState::now();
  for (std::size_t i = 0; i < rng.tensors().size(); ++i) state.set(rng_path(i), rng.tensors()[i]);
  return state;
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

  const auto counter = [&](const std::string& path) -> int64_t {
    try {
      return state.integer(path);
    } catch (const Error& error) {
      differences.push_back(error.what());
      return 0;
    }
  };
  const int64_t step = s.engine != nullptr ? counter("trainer/step") : 0;
  const int64_t epoch = counter("trainer/epoch");
  const int64_t phase = counter("trainer/phase");
  std::array<int64_t, 3> total_iter{};
  for (Mode mode : {Mode::train, Mode::eval, Mode::test})
    total_iter[static_cast<int>(mode)] = counter(cat("trainer/total_iter/", mode_name(mode)));

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

  if (!differences.empty())
    throw Error(cat("the checkpoint does not fit; nothing of it was taken:\n  ", join(differences, "\n  ")));

  // Everything fits: from here on nothing is refused but by a hook.
  at::NoGradGuard no_grad;
  for (const State::Leaf& leaf : here.leaves()) {
    at::Tensor target = leaf.value;
    target.copy_(state.tensor(leaf.path));
  }
  for (Target& target : optimizer_state)
    *target.place = target.value.defined() ? target.value.to(context_.device(), /*non_blocking=*/false, /*copy=*/true)
                                           : at::Tensor();
  if (s.engine != nullptr) s.engine->set_steps(step);
  s.epoch = epoch;
  s.phase = static_cast<Phase>(phase);
  s.total_iter = total_iter;
  for (const auto& hook : s.hooks) {
    const std::string path = cat("hooks/", hook->label);
    if (hook->stateful == nullptr || !state.has(path + "/version")) continue;
    s.call(*hook, "load_state", [&] {
      hook->stateful->load_state(state.child(path + "/state"), static_cast<int>(state.integer(path + "/version")));
    });
  }
  RngState(std::move(generators)).restore();
}

}  // namespace gantry
