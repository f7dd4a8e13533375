#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "gantry/config.h"
#include "gantry/parameters.h"

namespace gantry {

/// How pictures get another size: INTERPOLATION and what it means.
class Interpolation {
 public:
  static void declare(Parameters& parameters);
  explicit Interpolation(const Config& config);

  /// [N, ..., H, W] to [N, ..., height, width], of the same dtype; shrinking averages over all that a pixel stands for.
  /// `key` is what the batch calls the pictures, for messages.
  at::Tensor resized(const std::string& key, const at::Tensor& pictures, int64_t height, int64_t width) const;

 private:
  enum class Method { nearest, bilinear, bicubic };
  at::Tensor interpolated(const at::Tensor& planes, int64_t height, int64_t width) const;

  Config config_;
  Method method_;
};

}  // namespace gantry
