#include "gantry/model.h"

#include <unordered_map>

namespace gantry {

Model::Model() = default;
Model::~Model() = default;
double Model::nominal_weight() const { return 0; }

Module::Module() = default;
Module::~Module() = default;
int64_t Module::out_features() const { return 0; }

Loss::Loss() = default;
Loss::~Loss() = default;

namespace {

std::vector<NamedParameter> unique_tensors(const torch::OrderedDict<std::string, at::Tensor>& named) {
  std::vector<NamedParameter> result;
  std::unordered_map<const void*, std::size_t> seen;
  for (const auto& item : named) {
    if (!item.value().defined()) continue;
    auto [at, fresh] = seen.emplace(item.value().unsafeGetTensorImpl(), result.size());
    if (fresh)
      result.push_back({item.key(), item.value(), {}});
    else
      result[at->second].aliases.push_back(item.key());
  }
  return result;
}

}  // namespace

std::vector<NamedParameter> named_parameters(const torch::nn::Module& module) {
  return unique_tensors(module.named_parameters(/*recurse=*/true));
}

std::vector<NamedParameter> named_buffers(const torch::nn::Module& module) {
  return unique_tensors(module.named_buffers(/*recurse=*/true));
}

}  // namespace gantry
