#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gantry/model.h"
#include "gantry/probe.h"
#include "rng_state.h"

namespace gantry {

/// What makes an evaluation change nothing in training: on the way out, also by an exception, each module's
/// train flag and the random generators are as they were.
class EvaluationScope {
 public:
  explicit EvaluationScope(Model& model) : rng_(RngState::now()) {
    for (const auto& module : model.modules()) flags_.emplace_back(module, module->is_training());
    model.eval();
  }
  ~EvaluationScope() {
    // The flag of each module alone: train(flag) would set it for the whole subtree, so parents go first.
    for (auto& [module, flag] : flags_) module->train(flag);
    rng_.restore();
  }

 private:
  RngState rng_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> flags_;
};

/// A forward pass on the side: what the model shows in it is not of the running iteration.
class ProbesAside {
 public:
  explicit ProbesAside(Model& model) : model_(model), own_(std::exchange(model.probes, std::make_shared<Probes>())) {}
  ~ProbesAside() { model_.probes = std::move(own_); }
  ProbesAside(const ProbesAside&) = delete;
  ProbesAside& operator=(const ProbesAside&) = delete;

 private:
  Model& model_;
  std::shared_ptr<Probes> own_;
};

}  // namespace gantry
