#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gantry/batch.h"
#include "gantry/export.h"

namespace gantry {

/// Capability of a Module that a diffusion model is built on: what it predicts from a noisy input at a time.
class GANTRY_API Denoiser {
 public:
  virtual ~Denoiser();
  /// `noisy` [N, C, H, W]; `time` [N], floating point, in [0, 1]: 0 is the data, 1 is noise; `classes` [N], int64 in
  /// [0, num_classes()], the last one meaning "none"; undefined where the denoiser takes no classes. Returns the shape
  /// of `noisy`.
  virtual at::Tensor denoise(const at::Tensor& noisy, const at::Tensor& time, const at::Tensor& classes) = 0;
  virtual int64_t num_classes() const = 0;  ///< 0: takes none
};

struct SampleOptions {
  int64_t steps = 50;
  double guidance = 1;  ///< classifier-free: 1 is none; above, classes count for more
  std::string sampler;  ///< one of Generator::samplers(); empty: the first
};

/// Capability of a Model that makes new data (DiffusionSolver).
class GANTRY_API Generator {
 public:
  virtual ~Generator();
  /// From `noise` [N, C, H, W], standard normal, to samples of that shape in the range of the training data: [-1, 1]
  /// for pictures. `classes` as in Denoiser. Gradients are off, the model is in evaluation mode. Random numbers, if
  /// any, from the default generator.
  virtual at::Tensor generate(const at::Tensor& noise, const at::Tensor& classes, const SampleOptions& options) = 0;
  virtual int64_t num_classes() const = 0;  ///< 0: takes none
  /// The ways to go from noise to a sample, such as "ddim"; the usual one first.
  virtual std::vector<std::string> samplers() const = 0;
  /// [C, H, W] of the batch's data: samples have the same.
  virtual std::vector<int64_t> sample_shape(const Batch& batch) const = 0;
};

}  // namespace gantry
