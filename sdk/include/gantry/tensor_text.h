#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "gantry/export.h"
#include "gantry/fields.h"

/// Tensors and values in the words of error messages and files.

namespace gantry {

/// "float32", "int64", "uint8", "bool", ...: PyTorch's names.
GANTRY_API std::string dtype_text(at::ScalarType dtype);
/// "[3, 1, 28]"
GANTRY_API std::string shape_text(at::IntArrayRef shape);
/// "float32 [3, 2]"
GANTRY_API std::string tensor_text(const at::Tensor& tensor);
/// "a float32 [3, 2] tensor", "a number", "an integer", "a list of 3 strings", "a list of 2 tensors"
GANTRY_API std::string value_text(const Value& value);
/// The names in their order, "img, label"; "nothing" when there are none.
GANTRY_API std::string names_text(const Fields& fields);

}  // namespace gantry
