#pragma once

#include <ATen/core/Tensor.h>

namespace gantry {

/// The value of a 0-dim tensor on the CPU, without going through the dispatcher: item() costs a microsecond,
/// several times per iteration.
double read_cpu_scalar(const at::Tensor& value);

}  // namespace gantry
