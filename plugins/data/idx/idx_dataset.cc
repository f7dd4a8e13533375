#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "byte_images.h"
#include "gantry/dataset.h"
#include "gantry/file_system.h"
#include "gantry/gantry.h"
#include "idx_file.h"

namespace gantry::idx {

namespace {

at::Tensor to_tensor(const IdxFile& file) {
  at::Tensor tensor = at::empty(file.shape, file.dtype);
  if (!file.bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), file.bytes.data(), file.bytes.size());
  // Classes by number, which losses and metrics want in this type.
  const bool labels = tensor.dim() == 1 && at::isIntegralType(file.dtype, /*includeBool=*/false);
  return labels ? tensor.to(at::kLong) : tensor;
}

class IdxDataset final : public Dataset, public LookupGather {
 public:
  static void declare(Parameters& p) {
    Parameters file;
    file.add<std::string>("KEY").not_empty().help("What a batch calls it: img, label, ...");
    file.add<std::string>("PATH").not_empty().help("An IDX file, plain or compressed with gzip.");
    p.sections("FILES", std::move(file))
        .not_empty()
        .help("The files: each has one item per sample along its first dimension.");
  }

  IdxDataset(const Config& config, Context& context) {
    for (const Config& file : config.get<std::vector<Config>>("FILES")) add(file, context.files());
    if (items_.empty()) throw config.error("FILES", "names no file");
  }

  int64_t size() const override { return size_; }

  Batch get_batch(std::span<const int64_t> indices) const override {
    for (const int64_t index : indices) {
      if (index < 0 || index >= size_) throw Error(cat("there is no sample ", index, "; there are ", size_));
    }
    at::Tensor rows;
    Batch batch;
    batch.entries().reserve(items_.size());
    for (const Item& item : items_) {
      if (!item.values.defined()) {
        batch.set(item.key, item.images.gather(indices));
        continue;
      }
      if (!rows.defined()) {
        rows = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
        std::copy(indices.begin(), indices.end(), rows.mutable_data_ptr<int64_t>());
      }
      batch.set(item.key, item.values.index_select(0, rows));
    }
    return batch;
  }

  bool set_lookup(const std::string& key, const at::Tensor& table) override {
    if (lookup_channels(key) == 0 || table.numel() != 256 || !table.is_cpu() || table.element_size() > 8) return false;
    for (Item& item : items_) {
      if (item.key == key) item.images.set_table(table);
    }
    return true;
  }

  int64_t lookup_channels(const std::string& key) const override {
    const Item* item = find(key);
    return item != nullptr && !item->values.defined() ? 1 : 0;
  }

 private:
  struct Item {
    std::string key, path;
    ByteImages images;  // bytes in three dimensions
    at::Tensor values;  // everything else; undefined for images
  };

  const Item* find(const std::string& key) const {
    for (const Item& item : items_) {
      if (item.key == key) return &item;
    }
    return nullptr;
  }

  void add(const Config& config, const FileSystems& files) {
    Item item;
    item.key = config.get<std::string>("KEY");
    item.path = config.get<std::string>("PATH");
    if (find(item.key) != nullptr) throw config.error("KEY", cat("is '", item.key, "', as of another file"));
    IdxFile file = read(config, files, item.path);
    const int64_t count = file.shape[0];
    if (!items_.empty() && count != size_) {
      throw config.error("PATH", cat("does not belong to the other files: ", item.path, " has ", count, " samples, ",
                                     items_[0].path, " has ", size_));
    }
    size_ = count;
    if (file.dtype == at::kByte && file.shape.size() == 3)
      item.images = ByteImages(std::move(file.bytes), count, file.shape[1], file.shape[2]);
    else
      item.values = to_tensor(file);
    items_.push_back(std::move(item));
  }

  static IdxFile read(const Config& config, const FileSystems& files, const std::string& path) {
    try {
      if (!files.of(path).is_file(path)) throw Error(cat("there is no file ", path));
      return read_idx(files.get_from(path).path());
    } catch (const Error& error) {
      throw config.error("PATH", cat("cannot be used: ", error.what()));
    }
  }

  std::vector<Item> items_;
  int64_t size_ = 0;
};

}  // namespace

GANTRY_PLUGIN("gantry-idx", GANTRY_VERSION);
GANTRY_DATASET(IdxDataset, "IdxDataset",
               "Samples from IDX files, the format of MNIST: any element type, gzipped or not.");

}  // namespace gantry::idx
