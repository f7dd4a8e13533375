#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace probe_data {

/// The tensor as the content of a .npy file (https://numpy.org/neps/nep-0001-npy-format.html). Types that NumPy does
/// not have, such as bfloat16, become float32.
std::string encode_npy(const at::Tensor& tensor);

}  // namespace probe_data
