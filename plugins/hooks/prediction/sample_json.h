#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace prediction {

/// A sample's values as nested JSON lists, or one value; floating-point numbers as the shortest text that reads back as
/// the same, null for NaN and infinities.
std::string sample_json(const at::Tensor& sample);

}  // namespace prediction
