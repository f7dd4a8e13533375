#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/parameters.h"

namespace gantry {

/// Parameters that share their options. The learning rate is a property of the group and changes during
/// training; `base_lr` is what a schedule starts from.
class GANTRY_API ParamGroup final {
 public:
  ParamGroup(std::string name, double base_lr);
  const std::string& name() const { return name_; }
  double base_lr() const { return base_lr_; }
  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

 private:
  std::string name_;
  double base_lr_, lr_;
};

/// One parameter, or one slice of a flat shard, as an optimizer sees it. The tensors alias what the model
/// and the checkpoint hold: update them in place.
struct Slot {
  std::string name;               ///< the parameter's path in the model
  int64_t group = 0;              ///< index into Optimizer::groups()
  at::Tensor parameter;           ///< may be written in place: gradients are off during a step
  at::Tensor gradient;            ///< undefined when the parameter took no part: leave it alone
  std::vector<at::Tensor> state;  ///< as state_names() says; undefined until the optimizer's first step sets it
};

struct StepScope {
  /// 0-dim float32, on the parameters' device: gradients are to be divided by `grad_scale`, and the update
  /// must leave everything as it is where `found_inf` is not 0. Absent on most runs.
  std::optional<at::Tensor> grad_scale, found_inf;
};

/// Updates parameters from gradients. Main thread. State lives in the slots, so that it is saved by the
/// parameter's name and can be sharded; an optimizer keeps nothing else from step to step.
///
/// Optimizers that call the model again (LBFGS) do so through a capability interface.
class GANTRY_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Names of the entries of Slot::state, PyTorch's: "momentum_buffer", "exp_avg", ... Fixed after
  /// construction.
  virtual std::vector<std::string> state_names() const = 0;
  /// One update of all slots, each with its group's current learning rate. Gradients are off.
  virtual void step(std::span<Slot> slots, const StepScope& scope) = 0;

  std::vector<ParamGroup>& groups() { return groups_; }
  const std::vector<ParamGroup>& groups() const { return groups_; }

 protected:
  /// One group, "default", with this learning rate.
  explicit Optimizer(double learning_rate);

 private:
  std::vector<ParamGroup> groups_;
};

}  // namespace gantry
