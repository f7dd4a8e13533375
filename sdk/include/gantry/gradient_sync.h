#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "gantry/export.h"

namespace gantry {

/// How gradients become those of all processes. StepEngine drives it; main thread.
class GANTRY_API GradientSync {
 public:
  virtual ~GradientSync();
  virtual int size() const = 0;  ///< how many processes take part
  /// Once, before training: the parameters in the optimizer's order.
  virtual void attach(const std::vector<at::Tensor>& parameters) = 0;
  /// Before each backward pass. `exchange` is true for a window's last one alone: others keep gradients
  /// local.
  virtual void before_backward(bool exchange) = 0;
  /// After a window's last backward pass, with this process's weight Σw: from now on gradients are sums over
  /// all processes. Returns Σw over all of them.
  virtual double finish(double weight) = 0;
};

GANTRY_API std::unique_ptr<GradientSync> make_local_sync();

}  // namespace gantry
