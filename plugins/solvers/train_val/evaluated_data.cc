#include "evaluated_data.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gantry/metric.h>
#include <gantry/safetensors.h>
#include <gantry/text.h>

#include <utility>

void EvaluatedData::add(const gantry::Batch& batch, const gantry::Outputs& outputs) {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const at::Tensor& value = gantry::find_tensor(batch, outputs, keys_[i]);
    if (value.dim() == 0 || value.size(0) != batch.size())
      throw gantry::Error(gantry::cat("SAVE_EVAL_DATA: '", keys_[i], "' has the shape ", value.sizes(), " for ",
                                      batch.size(), " samples; it should have a value for each"));
    // A copy also on the CPU: a model may write into its output again.
    values_[i].push_back(value.detach().to(at::kCPU, value.scalar_type(), /*non_blocking=*/false, /*copy=*/true));
  }
  ids_.insert(ids_.end(), batch.ids.begin(), batch.ids.end());
}

void EvaluatedData::clear() {
  for (auto& batches : values_) batches.clear();
  ids_.clear();
}

void EvaluatedData::write(const std::string& path) const {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (std::size_t i = 0; i < keys_.size(); ++i) tensors.emplace_back(keys_[i], at::cat(values_[i]));
  tensors.emplace_back("sample_id", at::tensor(ids_, at::kLong));
  gantry::write_safetensors(path, tensors, {{"format", "pt"}});
}
