#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace diffusion {

/// A moment on the way from data to noise, at which an image is signal * data + noise * e with e standard normal.
struct Level {
  double time;  ///< in [0, 1]: 0 is the data
  double signal, noise;
};

/// The way from data to noise.
class NoisePath final {
 public:
  /// A straight line: signal 1 - t, noise t.
  static NoisePath straight();
  /// That of DDPM, where noise is added `timesteps` times, signal^2 + noise^2 being 1. `schedule`: "linear" (Ho et al.,
  /// 2020) or "cosine" (Nichol and Dhariwal, 2021).
  static NoisePath variance_preserving(int64_t timesteps, const std::string& schedule);

  /// A level for each number of `u`, [N] in [0, 1).
  struct Levels {
    at::Tensor time, signal, noise;
  };
  Levels at(const at::Tensor& u) const;

  /// From noise to data in so many steps: one level more, the last being the data. At most `timesteps`, where there
  /// are.
  std::vector<Level> back(int64_t steps) const;

 private:
  std::vector<double> signal_, noise_;  // of each timestep; empty on the straight line
  mutable at::Tensor table_;            // the same, [2, timesteps] in float32, on the device that was last asked from
};

}  // namespace diffusion
