#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace gantry::tensor_dataset {

/// Whether a file begins as numpy.save begins one.
bool is_npy(const std::string& path);

/// The array of a file in NumPy's format (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html),
/// versions 1 to 3, contiguous, rows first. Nothing in such a file is run: arrays of Python objects are refused. Throws
/// gantry::Error that names the file and says what is wrong with it.
at::Tensor read_npy(const std::string& path);

}  // namespace gantry::tensor_dataset
