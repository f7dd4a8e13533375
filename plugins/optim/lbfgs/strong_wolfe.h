#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

/// A point x + t * direction of the line that is searched, and what the function is there.
struct LinePoint {
  double t = 0;
  double loss = 0;
  double slope = 0;  ///< the gradient along the direction
  at::Tensor gradient;
};

struct LineSearch {
  std::function<LinePoint(double t)> evaluate;  ///< the point's gradient is its own, not written to again
  double direction_size = 0;                    ///< the largest element of the direction
  double tolerance_change = 0;                  ///< a bracket that moves no element by more is not searched further
  int64_t max_evaluations = 0;                  ///< beyond the first
};

/// Looks for a point that satisfies the strong Wolfe conditions, from `start` (t = 0) with `t` as the first guess: a
/// bracket is widened until it holds one, then narrowed by cubic interpolation. Gives the best point found, and how
/// often it evaluated. Takes the decisions that PyTorch's LBFGS takes.
LinePoint strong_wolfe(const LineSearch& search, const LinePoint& start, double t, int64_t& evaluations);
