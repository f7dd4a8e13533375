#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/safetensors.h"

namespace torch::nn {
class Module;
}

namespace gantry {

class FileSystems;
class Logger;

/// Named tensors from one file or several: a .safetensors file; the index of a sharded one (*.safetensors.index.json,
/// with "weight_map" from names to files beside it); or a folder that has model.safetensors, or that and an index. A
/// checkpoint is such a folder. Throws gantry::Error that says what was looked for.
class GANTRY_API WeightFiles final {
 public:
  static WeightFiles open(const std::string& path);
  /// Sorted. Tied tensors are there under each of their names: those that the metadata of the files name as aliases
  /// ("alias:<name>" = the name under which the tensor is stored) as well. SafetensorsHook writes them so; the bare
  /// names that safetensors.torch.save_model of Python writes are understood too.
  const std::vector<std::string>& names() const { return names_; }
  at::Tensor tensor(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  std::vector<std::pair<std::size_t, std::string>> places_;  // of each name: the file, and the name in it
};

/// Loads what MODEL.PRETRAINED_MODEL names into `model`, by the keys that Model::declare_common declares. NAME_MAP is
/// applied to the file's names in its order; then names that a pattern of IGNORE_KEYS is found in, on either side, are
/// left out. Unless STRICT is false every other name must be on both sides; dtypes are converted, shapes must agree
/// always. All that differs is one ConfigError, and then nothing has been loaded; so is a file that has nothing for the
/// model. A tied tensor of the model takes what any of its names has. Says in one line what was loaded, and what was
/// not.
GANTRY_API void load_pretrained(torch::nn::Module& model, const Config& config, FileSystems& files,
                                const Logger& logger);

}  // namespace gantry
