#include <ATen/ops/tensor.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "gantry/dataset.h"
#include "gantry/loader.h"
#include "gantry/transform.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

using gantry::Batch;
using gantry::Dataset;

namespace {

// A folder of its own for each test, gone at its end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gantry-idx-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  void write(const std::string& name, const std::string& bytes, bool compressed = true) const {
    const std::string file = (path_ / name).string();
    if (!compressed) {
      std::ofstream(file, std::ios::binary) << bytes;
      return;
    }
    gzFile out = gzopen((file + ".gz").c_str(), "wb");
    gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(out);
  }

 private:
  std::filesystem::path path_;
};

std::string idx(std::vector<uint32_t> shape, const std::string& bytes) {
  std::string file = {0, 0, 8, static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift & 0xFF);
  }
  return file + bytes;
}

// Image i has the bytes i, i + 1, ... (mod 256); its label is i.
std::string image_bytes(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    for (int p = 0; p < 28 * 28; ++p) bytes += static_cast<char>((i + p) % 256);
  }
  return bytes;
}
const std::string kLabels("\0\1\2", 3);

void write_good(const Folder& folder, const std::string& prefix = "train") {
  folder.write(prefix + "-images-idx3-ubyte", idx({3, 28, 28}, image_bytes(3)));
  folder.write(prefix + "-labels-idx1-ubyte", idx({3}, kLabels));
}

gantry::Config in(const Folder& folder, const std::string& mode = "train") {
  return map_config({{"DATA_DIR", text_config(folder.path())}, {"MODE", text_config(mode)}});
}

std::string error_of(const Folder& folder) {
  return PluginUnderTest("gantry-idx").config_error<Dataset>("FashionMnist", in(folder));
}

}  // namespace

TEST_CASE("FashionMnist gives bytes and labels by index") {
  const Folder folder;
  write_good(folder);
  auto dataset = PluginUnderTest("gantry-idx").build<Dataset>("FashionMnist", in(folder));
  CHECK(dataset->size() == 3);
  const std::vector<int64_t> indices = {2, 0, 2};
  const Batch batch = dataset->get_batch(indices);
  const at::Tensor img = batch.tensor("img");
  CHECK((img.scalar_type() == at::kByte));
  CHECK(img.sizes() == at::IntArrayRef({3, 1, 28, 28}));
  CHECK(batch.tensor("label").equal(at::tensor({2, 0, 2}, at::kLong)));
  for (int i = 0; i < 3; ++i) {
    const auto* bytes = img.const_data_ptr<uint8_t>() + i * 784;
    for (int p = 0; p < 784; ++p) REQUIRE(bytes[p] == (indices[static_cast<std::size_t>(i)] + p) % 256);
  }
  const std::vector<int64_t> outside = {3};
  CHECK_THROWS_AS(dataset->get_batch(outside), gantry::Error);
}

TEST_CASE("FashionMnist reads the evaluation files in the modes eval and test and also uncompressed ones") {
  const Folder folder;
  write_good(folder, "train");
  folder.write("t10k-images-idx3-ubyte", idx({1, 28, 28}, image_bytes(1)), false);
  folder.write("t10k-labels-idx1-ubyte", idx({1}, kLabels.substr(0, 1)), false);
  PluginUnderTest plugin("gantry-idx");
  CHECK(plugin.build<Dataset>("FashionMnist", in(folder, "train"))->size() == 3);
  CHECK(plugin.build<Dataset>("FashionMnist", in(folder, "eval"))->size() == 1);
  CHECK(plugin.build<Dataset>("FashionMnist", in(folder, "test"))->size() == 1);
}

TEST_CASE("FashionMnist finds the installed data by itself") {
  PluginUnderTest plugin("gantry-idx");
  for (const auto& [mode, size] : {std::pair{"train", 60000}, std::pair{"eval", 10000}}) {
    auto dataset = plugin.build<Dataset>("FashionMnist", map_config({{"MODE", text_config(mode)}}));
    REQUIRE(dataset->size() == size);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < size; ++i) all.push_back(i);
    const Batch batch = dataset->get_batch(all);
    for (int64_t c = 0; c < 10; ++c) CHECK(batch.tensor("label").eq(c).sum().item<int64_t>() == size / 10);
    if (size == 60000) {
      // What the field normalizes with.
      const at::Tensor img = batch.tensor("img").to(at::kFloat).div_(255);
      CHECK(img.mean().item<float>() == doctest::Approx(0.2860).epsilon(0.001));
      CHECK(img.std().item<float>() == doctest::Approx(0.3530).epsilon(0.001));
    }
  }
}

TEST_CASE("a missing file of Fashion-MNIST is named with the package that has it") {
  const Folder folder;
  const std::string text = error_of(folder);
  CHECK(contains(text, "DATA_DIR"));
  CHECK(contains(text, folder.path() + "/train-images-idx3-ubyte.gz"));
  CHECK(contains(text, "apt-get install dataset-fashion-mnist"));
}

TEST_CASE("a damaged file of Fashion-MNIST is refused with its name and both numbers") {
  const std::string images = idx({3, 28, 28}, image_bytes(3)), labels = idx({3}, kLabels);
  struct Case {
    std::string images, labels;
    std::vector<std::string> says;
  };
  const std::vector<Case> cases = {
      {images.substr(0, images.size() - 1), labels, {"train-images-idx3-ubyte", "2352", "2351"}},
      {images + "x", labels, {"train-images-idx3-ubyte", "2352"}},
      {images.substr(0, 9), labels, {"header", "16", "9"}},
      {"", labels, {"header", "16", "0"}},
      {labels, labels, {"0x00000801", "0x00000803"}},
      {images, images, {"train-labels-idx1-ubyte", "0x00000803", "0x00000801"}},
      {idx({3, 14, 56}, image_bytes(3)), labels, {"14 x 56", "28 x 28"}},
      {idx({2, 28, 28}, image_bytes(2)), labels, {"2 images", "3 labels"}},
      {images, idx({3}, "\1\2\12"), {"train-labels-idx1-ubyte", "label 10 at 2", "0 to 9"}},
      {idx({0xFFFFFFFF, 28, 28}, image_bytes(1)), labels, {"cut off", "3367254359280", "784"}},
      {idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, ""), labels, {"more bytes than a file can have"}},
  };
  for (const Case& bad : cases) {
    const Folder folder;
    folder.write("train-images-idx3-ubyte", bad.images);
    folder.write("train-labels-idx1-ubyte", bad.labels);
    const std::string text = error_of(folder);
    for (const std::string& part : bad.says) {
      CAPTURE(text);
      CHECK(contains(text, part));
    }
  }
}

TEST_CASE("a compressed file of Fashion-MNIST that is cut off or has a wrong checksum is refused") {
  for (const bool cut : {true, false}) {
    const Folder folder;
    write_good(folder);
    const std::string file = folder.path() + "/train-images-idx3-ubyte.gz";
    std::ifstream in_file(file, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in_file)), {});
    if (cut) {
      bytes.resize(bytes.size() / 2);
    } else {
      bytes[bytes.size() - 8] ^= 1;  // the checksum's first byte
    }
    std::ofstream(file, std::ios::binary) << bytes;
    const std::string text = error_of(folder);
    CHECK(contains(text, file));
    CHECK(contains(text, cut ? "cut off" : "incorrect data check"));
  }
}

TEST_CASE("a table that FashionMnist cannot use is turned down and changes nothing") {
  const Folder folder;
  write_good(folder);
  auto dataset = PluginUnderTest("gantry-idx").build<Dataset>("FashionMnist", in(folder));
  auto& lookup = dynamic_cast<gantry::LookupGather&>(*dataset);
  CHECK(lookup.lookup_channels("img") == 1);
  CHECK(lookup.lookup_channels("label") == 0);
  const at::Tensor table = at::tensor(std::vector<double>(256, 1.0), at::kFloat).view({1, 256});
  CHECK_FALSE(lookup.set_lookup("label", table));
  CHECK_FALSE(lookup.set_lookup("img", table.expand({3, 256})));
  const std::vector<int64_t> indices = {0};
  CHECK((dataset->get_batch(indices).tensor("img").scalar_type() == at::kByte));
}

namespace {

gantry::Config normalization(const std::string& mean, const std::string& std) {
  return map_config({{"MEAN", list_config({mean})}, {"STD", list_config({std})}});
}

class OrderSampler final : public gantry::Sampler {
 public:
  std::vector<int64_t> order(const gantry::SamplerPass& pass) const override {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < pass.dataset_size; ++i) indices.push_back(i);
    return indices;
  }
};

// Hides that the transform is pointwise.
class Plain final : public gantry::Transform {
 public:
  explicit Plain(std::unique_ptr<gantry::Transform> inner) : inner_(std::move(inner)) {}
  void apply_batch(Batch& batch, uint64_t seed, uint32_t stream) const override {
    inner_->apply_batch(batch, seed, stream);
  }

 private:
  std::unique_ptr<gantry::Transform> inner_;
};

class CountedNoise final : public gantry::Transform {
 public:
  void apply(gantry::Sample& sample, gantry::CounterRng& rng) const override {
    sample.set("noise", static_cast<int64_t>(rng.next_u32()));
  }
};

Batch loaded(bool folded, int transforms, const Folder& folder) {
  gantry::Loader::Parts parts;
  parts.dataset = PluginUnderTest("gantry-idx").build<Dataset>("FashionMnist", in(folder));
  parts.sampler = std::make_unique<OrderSampler>();
  PluginUnderTest normalize("gantry-normalize");
  const std::vector<std::pair<std::string, std::string>> numbers = {{"0.2860", "0.3530"}, {"-0.1", "1.7"}};
  for (int i = 0; i < transforms; ++i) {
    const auto& [mean, std] = numbers[static_cast<std::size_t>(i)];
    auto transform = normalize.build<gantry::Transform>("Normalize", normalization(mean, std));
    if (!folded) transform = std::make_unique<Plain>(std::move(transform));
    parts.transforms.push_back(std::move(transform));
  }
  parts.transforms.push_back(std::make_unique<CountedNoise>());
  Dataset& dataset = *parts.dataset;
  gantry::Loader::Options options;
  options.batch_size = 3;
  gantry::Loader loader(std::move(parts), options);
  // Whether it was folded shows in what the dataset itself gives.
  const std::vector<int64_t> indices = {0};
  const bool by_table = dataset.get_batch(indices).tensor("img").scalar_type() == at::kFloat;
  CHECK(by_table == folded);
  loader.begin(1);
  Batch batch;
  REQUIRE(loader.next(batch));
  return batch;
}

}  // namespace

TEST_CASE("normalization folded into the gather of a batch gives the bits of the unfolded one") {
  const Folder folder;
  write_good(folder);
  for (const int transforms : {1, 2}) {
    const Batch folded = loaded(true, transforms, folder), plain = loaded(false, transforms, folder);
    CHECK((folded.tensor("img").scalar_type() == at::kFloat));
    CHECK(folded.tensor("img").sizes() == at::IntArrayRef({3, 1, 28, 28}));
    CHECK(folded.tensor("img").equal(plain.tensor("img")));
    CHECK(folded.tensor("img").std().item<float>() > 0.1);
    // Transforms that remain draw the same numbers.
    CHECK(folded.tensor("noise").equal(plain.tensor("noise")));
  }
}
