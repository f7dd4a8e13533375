#pragma once

#include <gantry/torch.h>

/// The target in the prediction's type. Throws where their shapes differ: LibTorch would stretch one over the other,
/// and [N, 1] beside [N] becomes [N, N].
inline at::Tensor target_like(const at::Tensor& prediction, const at::Tensor& target, const char* loss) {
  if (prediction.sizes() != target.sizes()) {
    throw gantry::Error(gantry::cat(loss, " compares values one by one, but the prediction has shape ",
                                    prediction.sizes(), " and the target ", target.sizes()));
  }
  return target.to(prediction.scalar_type());
}
