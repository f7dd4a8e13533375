#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace gantry {

/// LibTorch's default generators, of the CPU and of every GPU of this process, as they are at one moment.
class RngState {
 public:
  static RngState now();
  explicit RngState(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {}
  void restore() const;
  const std::vector<at::Tensor>& tensors() const { return tensors_; }  ///< CPU first, then each GPU

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace gantry
