#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "byte_images.h"
#include "gantry/dataset.h"
#include "gantry/file_system.h"
#include "gantry/gantry.h"
#include "idx_file.h"

namespace gantry::idx {

namespace {

constexpr const char* kDebianFolder = "/usr/share/datasets/fashion-mnist";
constexpr int64_t kHeight = 28, kWidth = 28, kClasses = 10;

class FashionMnist final : public Dataset, public LookupGather {
 public:
  static void declare(Parameters& p) {
    p.add<std::string>("DATA_DIR", "")
        .help(
            cat("Folder of the four IDX files, gzipped or not; empty: that of Debian's package dataset-fashion-mnist, ",
                kDebianFolder));
  }

  FashionMnist(const Config& config, Context& context) {
    const FileSystems& files = context.files();
    const std::string mode = config.has("MODE") ? config.get<std::string>("MODE") : "train";
    const std::string prefix = mode == "train" ? "train" : "t10k";
    const std::string image_path = find_file(config, files, prefix + "-images-idx3-ubyte");
    const std::string label_path = find_file(config, files, prefix + "-labels-idx1-ubyte");
    IdxFile images = read(config, files, image_path, 3);
    IdxFile labels = read(config, files, label_path, 1);

    if (images.shape[1] != kHeight || images.shape[2] != kWidth) {
      throw config.error("DATA_DIR",
                         cat("has a file that does not belong here: ", image_path, " has images of ", images.shape[1],
                             " x ", images.shape[2], " pixels, not of ", kHeight, " x ", kWidth));
    }
    if (images.shape[0] != labels.shape[0]) {
      throw config.error(
          "DATA_DIR", cat("has files that do not belong together: ", image_path, " has ", images.shape[0], " images, ",
                          label_path, " has ", labels.shape[0], " labels"));
    }
    const auto bad = std::find_if(labels.bytes.begin(), labels.bytes.end(), [](uint8_t l) { return l >= kClasses; });
    if (bad != labels.bytes.end()) {
      throw config.error("DATA_DIR",
                         cat("has a file that does not belong here: ", label_path, " has the label ", int{*bad}, " at ",
                             bad - labels.bytes.begin(), "; labels are 0 to ", kClasses - 1));
    }
    images_ = ByteImages(std::move(images.bytes), images.shape[0], kHeight, kWidth);
    labels_ = std::move(labels.bytes);
  }

  int64_t size() const override { return images_.count(); }

  Batch get_batch(std::span<const int64_t> indices) const override {
    Batch batch;
    batch.entries().reserve(2);
    batch.set("img", images_.gather(indices));
    at::Tensor label = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
    auto* out = label.mutable_data_ptr<int64_t>();
    for (const int64_t index : indices) *out++ = labels_[static_cast<std::size_t>(index)];
    batch.set("label", std::move(label));
    return batch;
  }

  bool set_lookup(const std::string& key, const at::Tensor& table) override {
    if (lookup_channels(key) == 0 || table.numel() != 256 || !table.is_cpu() || table.element_size() > 8) return false;
    images_.set_table(table);
    return true;
  }

  int64_t lookup_channels(const std::string& key) const override { return key == "img" ? 1 : 0; }

 private:
  static std::string find_file(const Config& config, const FileSystems& files, const std::string& name) {
    const std::string given = config.get<std::string>("DATA_DIR");
    const std::string folder = given.empty() ? kDebianFolder : given;
    for (const char* suffix : {".gz", ""}) {
      const std::string path = folder + "/" + name + suffix;
      try {
        if (files.of(path).is_file(path)) return path;
      } catch (const Error& error) {
        throw config.error("DATA_DIR", cat("cannot be used: ", error.what()));
      }
    }
    throw config.error("DATA_DIR",
                       cat(given.empty() ? "is empty, and the default folder lacks " : "lacks ", folder, "/", name,
                           ".gz: run 'apt-get install dataset-fashion-mnist', or set DATA_DIR to the "
                           "folder that has the file"));
  }

  static IdxFile read(const Config& config, const FileSystems& files, const std::string& path, int dimensions) {
    try {
      return read_idx_bytes(files.get_from(path).path(), dimensions);
    } catch (const Error& error) {
      throw config.error("DATA_DIR", cat("has a bad file: ", error.what()));
    }
  }

  ByteImages images_;
  std::vector<uint8_t> labels_;
};

}  // namespace

GANTRY_DATASET(FashionMnist, "FashionMnist",
               "Fashion-MNIST: 60,000 images of clothing for training, 10,000 for evaluation and test; 10 classes.");

}  // namespace gantry::idx
