#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "gantry/dataset.h"
#include "gantry/file_system.h"
#include "gantry/gantry.h"
#include "gantry/safetensors.h"
#include "npy_file.h"

namespace gantry::tensor_dataset {

namespace {

// LibTorch selects rows of signed integers alone; the bits are the same.
at::ScalarType selectable(at::ScalarType dtype) {
  switch (dtype) {
    case at::kUInt16:
      return at::kShort;
    case at::kUInt32:
      return at::kInt;
    case at::kUInt64:
      return at::kLong;
    default:
      return dtype;
  }
}

class TensorDataset final : public Dataset {
 public:
  static void declare(Parameters& p) {
    Parameters file;
    file.add<std::string>("PATH").not_empty().help(
        "A .safetensors file or one of numpy.save; its content tells which.");
    file.optional<std::string>("TENSOR").not_empty().help(
        "Of a safetensors file, the one tensor to take; default: all, under their names.");
    file.optional<std::string>("KEY").not_empty().help(
        "What a batch calls the tensor; default: its name, or that of the .npy file.");
    p.sections("FILES", std::move(file))
        .not_empty()
        .help("Where the tensors are: each has one item per sample along its first dimension.");
  }

  TensorDataset(const Config& config, Context& context) {
    for (const Config& file : config.get<std::vector<Config>>("FILES")) {
      try {
        add(file, context.files());
      } catch (const ConfigError&) {
        throw;
      } catch (const std::exception&) {
        throw file.error("PATH", cat("cannot be used: ", current_exception_message()));
      }
    }
    if (items_.empty()) throw config.error("FILES", "has no tensors");
  }

  int64_t size() const override { return items_[0].values.size(0); }

  Batch get_batch(std::span<const int64_t> indices) const override {
    at::Tensor rows = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
    std::copy(indices.begin(), indices.end(), rows.mutable_data_ptr<int64_t>());
    Batch batch;
    batch.entries().reserve(items_.size());
    for (const Item& item : items_) batch.set(item.key, item.values.index_select(0, rows).view(item.dtype));
    return batch;
  }

 private:
  struct Item {
    std::string key, source;  // `source` for messages
    at::ScalarType dtype;
    at::Tensor values;
  };

  void add(const Config& config, const FileSystems& files) {
    const std::string path = config.get<std::string>("PATH");
    if (!files.of(path).is_file(path)) throw Error(cat("there is no file ", path));
    copies_.push_back(files.get_from(path));
    const std::string& local = copies_.back().path();
    const bool named = config.has("KEY");
    if (is_npy(local)) {
      if (config.has("TENSOR"))
        throw config.error("TENSOR", cat("is for safetensors files: ", path, " is one array without a name"));
      const std::string stem = std::filesystem::path(path).stem();
      add_tensor(config, named ? config.get<std::string>("KEY") : stem, path, read_npy(local));
      return;
    }

    const SafetensorsFile file = open(path, local);
    if (config.has("TENSOR")) {
      const std::string name = config.get<std::string>("TENSOR");
      add_tensor(config, named ? config.get<std::string>("KEY") : name, cat("'", name, "' of ", path),
                 file.tensor(name));
      return;
    }
    if (named && file.entries().size() != 1) {
      throw config.error(
          "KEY", cat("is one name, but ", path, " has ", file.entries().size(), " tensors: say which with TENSOR"));
    }
    for (const SafetensorsFile::Entry& entry : file.entries()) {
      add_tensor(config, named ? config.get<std::string>("KEY") : entry.name, cat("'", entry.name, "' of ", path),
                 file.tensor(entry.name));
    }
  }

  static SafetensorsFile open(const std::string& path, const std::string& local) {
    try {
      return SafetensorsFile::open(local);
    } catch (const Error& error) {
      throw Error(cat(path, " is no array of numpy.save, and as a safetensors file: ", error.what()));
    }
  }

  void add_tensor(const Config& config, const std::string& key, const std::string& source, const at::Tensor& tensor) {
    for (const Item& item : items_) {
      if (item.key != key) continue;
      throw config.error("KEY", cat("'", key, "' would be two things: ", item.source, " and ", source,
                                    "; give one of them another KEY"));
    }
    if (tensor.dim() == 0) throw config.error("PATH", cat("cannot be used: ", source, " is a single number"));
    if (!items_.empty() && tensor.size(0) != size()) {
      throw config.error("PATH", cat("does not belong to the other tensors: ", source, " has ", tensor.size(0),
                                     " samples, ", items_[0].source, " has ", size()));
    }
    items_.push_back({key, source, tensor.scalar_type(), tensor.view(selectable(tensor.scalar_type()))});
  }

  std::vector<LocalCopy> copies_;  // safetensors files stay mapped
  std::vector<Item> items_;
};

}  // namespace

GANTRY_PLUGIN("gantry-tensor-dataset", GANTRY_VERSION);
GANTRY_DATASET(TensorDataset, "TensorDataset", "Samples from tensors in safetensors files and arrays of numpy.save.");

}  // namespace gantry::tensor_dataset
