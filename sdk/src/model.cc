#include "gantry/model.h"

#include <unordered_map>

namespace gantry {

void Model::declare_common(Parameters& parameters) {
  parameters.optional<std::string>("PRETRAINED_MODEL")
      .not_empty()
      .help(
          "Weights to start from: a .safetensors file, the index of a sharded one (.safetensors.index.json), or a "
          "folder with such files, as a checkpoint is.");
  parameters.add<bool>("STRICT", true)
      .help("Whether the model and PRETRAINED_MODEL must have the same names. Shapes must agree always.");
  parameters.add<std::vector<std::string>>("IGNORE_KEYS", std::vector<std::string>{})
      .help("Regular expressions: what one of them is found in, of the model's names and the file's, is left out.");
  Parameters keys;
  keys.add<std::string>("FROM").not_empty().help("A regular expression that is looked for in the file's names.");
  keys.add<std::string>("TO").help("What stands in its place; $1 is its first group.");
  parameters.sections("NAME_MAP", std::move(keys))
      .help("Renames what PRETRAINED_MODEL has, one entry after the other, before names are compared.");
}

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
