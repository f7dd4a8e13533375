#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "gantry/export.h"

/// Pictures from tensors. Any thread.
namespace gantry {

/// Bytes of a picture or of several, [..., H, W], on the CPU and contiguous: bytes stay; floating-point numbers are
/// taken from [0, 1] to 0..255, rounded, what lies outside (NaN too) to the nearer end; booleans are black and white.
/// Throws gantry::Error for another dtype.
GANTRY_API at::Tensor to_bytes(const at::Tensor& images);

/// Lays pictures [N, C, H, W] (or one, [C, H, W]) out in rows of `columns`, with `padding` black pixels between them:
/// [C, rows*(H+padding)+padding, ...]. 0 columns: as square as it gets. Keeps the dtype.
GANTRY_API at::Tensor make_grid(const at::Tensor& images, int64_t columns = 0, int64_t padding = 2);

/// A PNG file (https://www.w3.org/TR/png/) of one picture [C, H, W], C being 1 or 3, after to_bytes.
GANTRY_API std::string encode_png(const at::Tensor& image);

}  // namespace gantry
