#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace stop_and_go {

/// How the numbers of two tensors differ.
struct NumberDifference {
  int64_t count = 0, of = 0;                  ///< so many numbers differ, of so many
  std::string index, expected, actual;        ///< the first of them: "[0, 3]", "" of a single number
  double max_absolute = 0, max_relative = 0;  ///< over all; NaN and infinity left out
  std::optional<int64_t> ulps;                ///< between the first ones, for floating-point numbers of one sign or two

  /// "at [0, 3]: 0.5 and 0.25; 2 of 12 numbers differ, by at most 0.25 (relative 0.5); 8388608 ulps"
  std::string text() const;
};

/// Of tensors on the CPU of one dtype and shape; nothing when no bit differs. With `tolerance` > 0, floating-point
/// numbers count as equal where they are no further apart than so much of the largest magnitude in `expected`; NaN
/// and infinity are equal to their own bits alone.
std::optional<NumberDifference> number_difference(const at::Tensor& expected, const at::Tensor& actual,
                                                  double tolerance);

}  // namespace stop_and_go
