#pragma once

#include <ATen/core/Tensor.h>
#include <gantry/optimizer.h>
#include <gantry/slot_batches.h>

#include <string>
#include <utility>
#include <vector>

/// An optimizer that counts its steps and is made of LibTorch's _foreach_ operators, which take all tensors of a batch
/// at once. Nothing in here waits for the device.
class ForeachOptimizer : public gantry::Optimizer {
 public:
  std::vector<std::string> state_names() const final { return names_; }
  /// Leaves all as it was where `found_inf` is set, by putting it back.
  void step(std::span<gantry::Slot> slots, const gantry::StepScope& scope) final;

 protected:
  /// Positions in Slot::state and SlotBatch::state; those behind are the derived class's.
  static constexpr std::size_t kStep = 0, kOwn = 1;

  ForeachOptimizer(const gantry::Config& config, const std::vector<std::string>& own_state);

  /// Sets the state of a slot before its first step: by default zeros in the parameter's shape.
  virtual void start(gantry::Slot& slot, const gantry::ParamGroup& group) const;
  /// `batch.state[kStep]` already counts this step.
  virtual void update(gantry::SlotBatch& batch, const gantry::ParamGroup& group) const = 0;

  /// The gradients, with the group's weight decay as an L2 penalty: the batch's own where there is none.
  static std::vector<at::Tensor> penalized_gradients(const gantry::SlotBatch& batch, const gantry::ParamGroup& group);

 private:
  std::vector<std::string> names_;
  gantry::SlotBatches batches_;
};

/// 0-dim tensors as one vector, in double precision, to compute a number for each parameter of a batch.
at::Tensor as_vector(const std::vector<at::Tensor>& scalars);

/// Two numbers of this key.
std::pair<double, double> two_numbers(const gantry::Config& config, const char* key);
