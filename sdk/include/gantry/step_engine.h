#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gantry/export.h"
#include "gantry/gradient_sync.h"
#include "gantry/optimizer.h"

namespace gantry {

/// From a loss to an updated model: backward pass, gradient exchange, clipping, optimizer step, zeroing, in
/// one place. BackwardHook configures and triggers it; the solver tells it where windows end.
///
/// A *window* is ACCUMULATE_STEP iterations, fewer at an epoch's end; it ends in one optimizer *step*. With
/// a batch's weight w, its nominal weight w0 and K iterations to a window, each loss is scaled by w/(K*w0)
/// and the window's gradients by K*w0/Σw: for losses that are means over samples, without batch statistics,
/// the step is that of one big batch, whatever the sizes. Main thread.
class GANTRY_API StepEngine final {
 public:
  /// What happens around a step; the solver implements it.
  class Observer {
   public:
    virtual ~Observer();
    virtual void before_step() = 0;  ///< gradients are whole: set the learning rate, tell GradientHooks
    virtual void update(Optimizer& optimizer, std::span<Slot> slots, const StepScope& scope) = 0;
    virtual void after_step() = 0;  ///< whether or not there was an update; steps() has advanced if so
  };
  /// What a loss (or, where clipping computes it anyway, a gradient norm) that is not finite leads to: an error
  /// before any update; the window's update left out; nothing.
  enum class NonFinite { error, skip, ignore };

  StepEngine(Optimizer& optimizer, std::vector<Slot> slots, std::unique_ptr<GradientSync> sync, Observer& observer);
  ~StepEngine();
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;

  // --- configuration, before training ---
  void set_gradient_clip(double max_norm);  ///< <= 0: none; the L2 norm over all parameters
  void set_accumulate_step(int64_t iterations);
  void set_nonfinite(NonFinite policy);
  int64_t accumulate_step() const;

  // --- the solver, once per training iteration, before after_iter ---
  /// `loss` has its graph. `last_of_epoch`: the window ends here whatever its length.
  void begin_iteration(at::Tensor loss, double weight, double nominal_weight, bool last_of_epoch);

  // --- the hook that triggers the backward pass ---
  /// Runs it and, where the window ends, the step. Does nothing without a loss.
  void backward();

  /// Whether the latest iteration ended a window.
  bool backward_step() const;
  bool window_open() const;       ///< gradients of an unfinished window are held
  int64_t steps() const;          ///< optimizer steps taken
  void set_steps(int64_t steps);  ///< a resumed run's
  /// The L2 norm of all gradients before clipping; computed on demand, valid between before_step and
  /// after_step. 0-dim, on the parameters' device.
  at::Tensor gradient_norm();
  /// 0-dim bool, on the parameters' device: whether the latest step left everything as it was.
  at::Tensor step_skipped() const;
  const at::Tensor& loss() const;  ///< with its graph, until backward() has run

  std::vector<Slot>& slots();
  Optimizer& optimizer();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry
