#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <limits>
#include <memory>
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
  ParamGroup(std::string name, double base_lr, double weight_decay = 0);
  const std::string& name() const { return name_; }
  double base_lr() const { return base_lr_; }
  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }
  double weight_decay() const { return weight_decay_; }
  /// SGD's momentum, Adam's first beta: set by the optimizer's constructor and, during training, by schedules that
  /// cycle it. NaN: this optimizer has none.
  double momentum() const { return momentum_; }
  void set_momentum(double momentum) { momentum_ = momentum; }

 private:
  std::string name_;
  double base_lr_, lr_, weight_decay_;
  double momentum_ = std::numeric_limits<double>::quiet_NaN();
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
/// parameter's name and can be sharded; an optimizer keeps nothing else from step to step, unless it also is
/// Stateful (capability.h).
class GANTRY_API Optimizer {
 public:
  /// PARAM_GROUPS: a list of {MATCH, LEARNING_RATE, WEIGHT_DECAY}. A parameter belongs to the first group that has a
  /// pattern (name_pattern.h) found in its name; group 0, "default", has the rest. What a group leaves out is the
  /// optimizer's own.
  static void declare_common(Parameters& parameters);

  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Names of the entries of Slot::state, PyTorch's: "momentum_buffer", "exp_avg", ... Fixed after
  /// construction.
  virtual std::vector<std::string> state_names() const = 0;
  /// One update of all slots, each with its group's current learning rate and weight decay. Gradients are off.
  virtual void step(std::span<Slot> slots, const StepScope& scope) = 0;

  std::vector<ParamGroup>& groups() { return groups_; }
  const std::vector<ParamGroup>& groups() const { return groups_; }
  /// The group of the parameter of this name.
  int64_t group_of(const std::string& parameter) const;

 protected:
  /// Makes the groups from PARAM_GROUPS, LEARNING_RATE and, where it is declared, WEIGHT_DECAY.
  explicit Optimizer(const Config& config);

 private:
  struct Patterns;
  std::vector<ParamGroup> groups_;
  std::unique_ptr<Patterns> patterns_;
};

/// Capability of an optimizer whose step evaluates the loss several times (LBFGS). In place of Optimizer::step the
/// solver then calls this. Needs ACCUMULATE_STEP 1.
class GANTRY_API ClosureOptimizer {
 public:
  virtual ~ClosureOptimizer();
  /// `loss` and the slots' gradients are those of the parameters as they are. `evaluate` computes both anew for the
  /// same batch, after the parameters were changed: it returns the loss and sets each slot's gradient.
  virtual void step(std::span<Slot> slots, double loss, const std::function<double()>& evaluate) = 0;
};

}  // namespace gantry
