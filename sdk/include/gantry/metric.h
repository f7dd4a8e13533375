#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "gantry/batch.h"
#include "gantry/export.h"
#include "gantry/parameters.h"

namespace gantry {

/// A figure over a whole evaluation: reset, then update per batch, then compute. Main thread.
/// `update` must not wait for the device; add to tensors there.
class GANTRY_API Metric {
 public:
  virtual ~Metric();
  virtual void reset() = 0;
  virtual void update(const Batch& batch, const Outputs& outputs) = 0;
  /// What update adds to, as aliases: the solver sums them over all processes before compute.
  virtual std::vector<at::Tensor> sums() = 0;
  /// Adds the figures under their names: "acc@1".
  virtual void compute(Scalars& result) = 0;
};

/// The tensor that `key` names in the outputs or, failing that, in the batch; where nothing is called so, "name.2" is
/// number 2, counted from 0, of a list of tensors called "name". Throws gantry::Error that lists what there is.
GANTRY_API const at::Tensor& find_tensor(const Batch& batch, const Outputs& outputs, std::string_view key);

}  // namespace gantry
