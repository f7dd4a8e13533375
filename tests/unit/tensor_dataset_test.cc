#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>

#include "gantry/dataset.h"
#include "gantry/safetensors.h"
#include "plugin_under_test.h"
#include "unit/data_files.h"
#include "unit/messages.h"

using gantry::Batch;
using gantry::Dataset;

namespace {

using File = std::vector<std::pair<std::string, std::string>>;  // the keys of one item of FILES

gantry::Config config_of(const std::vector<File>& files) {
  std::vector<gantry::Config> items;
  for (const File& file : files) {
    std::vector<std::pair<std::string, gantry::Config>> entries;
    for (const auto& [key, value] : file) entries.emplace_back(key, text_config(value));
    items.push_back(map_config(std::move(entries)));
  }
  return map_config({{"FILES", gantry::Config::list(std::move(items), {})}});
}

std::unique_ptr<Dataset> open(const std::vector<File>& files) {
  return PluginUnderTest("gantry-tensor-dataset").build<Dataset>("TensorDataset", config_of(files));
}

std::string config_error(const std::vector<File>& files) {
  return PluginUnderTest("gantry-tensor-dataset").config_error<Dataset>("TensorDataset", config_of(files));
}

std::vector<std::string> keys(const Batch& batch) {
  std::vector<std::string> result;
  for (const auto& [key, value] : batch.entries()) result.push_back(key);
  return result;
}

std::string bytes_in(const at::Tensor& tensor) {
  REQUIRE(tensor.is_contiguous());
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// A file of numpy's with this header.
std::string npy(std::string header, const std::string& data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  if (version > 1) file += std::string(2, '\0');
  return file + header + data;
}

}  // namespace

TEST_CASE("TensorDataset gives the bits of arrays that numpy saved in every type") {
  const DataFiles files;
  if (!files) return;
  const std::pair<const char*, at::ScalarType> types[] = {
      {"int8", at::kChar},       {"int16", at::kShort},     {"int32", at::kInt},
      {"int64", at::kLong},      {"uint8", at::kByte},      {"uint16", at::kUInt16},
      {"uint32", at::kUInt32},   {"uint64", at::kUInt64},   {"float16", at::kHalf},
      {"float32", at::kFloat},   {"float64", at::kDouble},  {"complex64", at::kComplexFloat},
      {"bool", at::kBool},       {"fortran", at::kDouble},  {"complex128", at::kComplexDouble},
      {"version_2", at::kFloat}, {"version_3", at::kFloat},
  };
  for (const auto& [name, dtype] : types) {
    CAPTURE(name);
    const auto dataset = open({{{"PATH", files / ("arrays/" + std::string(name) + ".npy")}}});
    REQUIRE(dataset->size() == 5);
    const at::Tensor values = dataset->get_batch(std::vector<int64_t>{3, 1}).tensor(name);
    CHECK((values.scalar_type() == dtype));
    CHECK(values.sizes() == at::IntArrayRef({2, 2, 3}));
    const std::string all = bytes_of(files / ("arrays/" + std::string(name) + ".bytes"));
    const std::size_t row = all.size() / 5;
    CHECK(bytes_in(values) == all.substr(3 * row, row) + all.substr(row, row));
  }
  const auto vector = open({{{"PATH", files / "arrays/vector.npy"}, {"KEY", "label"}}});
  CHECK(vector->get_batch(std::vector<int64_t>{4, 0}).tensor("label").equal(at::tensor({4, 0}, at::kLong)));
  CHECK(open({{{"PATH", files / "arrays/nothing.npy"}}})->size() == 0);
}

TEST_CASE("TensorDataset takes all tensors of a safetensors file or one under another name") {
  const DataFiles files;
  if (!files) return;
  const std::string path = files / "tensors.safetensors";
  const Batch all = open({{{"PATH", path}}})->get_batch(std::vector<int64_t>{4, 1});
  CHECK(all.tensor("x").equal(at::arange(20, at::kFloat).view({5, 4}).index_select(0, at::tensor({4, 1}, at::kLong))));
  CHECK(all.tensor("y").equal(at::tensor({40, 10}, at::kLong)));
  CHECK(all.entries().size() == 2);

  const Batch renamed = open({{{"PATH", path}, {"TENSOR", "y"}, {"KEY", "label"}},
                              {{"PATH", path}, {"TENSOR", "x"}},
                              {{"PATH", files / "arrays/vector.npy"}, {"KEY", "id"}}})
                            ->get_batch(std::vector<int64_t>{2});
  CHECK(keys(renamed) == std::vector<std::string>{"label", "x", "id"});
  CHECK(renamed.tensor("label").equal(at::tensor({20}, at::kLong)));
  CHECK(renamed.tensor("id").equal(at::tensor({2}, at::kLong)));
}

TEST_CASE("TensorDataset selects rows of types that LibTorch hardly knows") {
  const TemporaryDirectory directory;
  const at::Tensor values = at::rand({4, 3}).to(at::kBFloat16), small = values.to(at::ScalarType::Float8_e4m3fn);
  const at::Tensor unsigned_row = at::tensor({1, -2, 3, -4}, at::kShort).view(at::kUInt16);
  gantry::write_safetensors(directory / "file", {{"values", values}, {"small", small}, {"u", unsigned_row}});
  const Batch batch = open({{{"PATH", directory / "file"}}})->get_batch(std::vector<int64_t>{3});
  CHECK(bytes_in(batch.tensor("values")) == bytes_in(values.slice(0, 3)));
  CHECK(bytes_in(batch.tensor("small")) == bytes_in(small.slice(0, 3)));
  CHECK((batch.tensor("u").scalar_type() == at::kUInt16));
  CHECK(bytes_in(batch.tensor("u")) == bytes_in(unsigned_row.slice(0, 3)));
}

TEST_CASE("TensorDataset names what does not belong together with both numbers") {
  const DataFiles files;
  if (!files) return;
  const TemporaryDirectory directory;
  gantry::write_safetensors(directory / "six", {{"six", at::arange(6)}});
  gantry::write_safetensors(directory / "number", {{"number", at::full({}, 1.0)}});
  const std::string five = files / "arrays/vector.npy";
  const std::string lengths = config_error({{{"PATH", five}}, {{"PATH", directory / "six"}}});
  CHECK(contains(lengths, "'six' of " + (directory / "six") + " has 6 samples, " + five + " has 5"));
  CHECK(contains(config_error({{{"PATH", five}}, {{"PATH", five}}}), "'vector' would be two things"));
  CHECK(contains(config_error({{{"PATH", directory / "number"}}}), "is a single number"));
  CHECK(contains(config_error({{{"PATH", files / "arrays/scalar.npy"}}}), "is a single number"));
  CHECK(contains(config_error({{{"PATH", files / "tensors.safetensors"}, {"KEY", "k"}}}), "has 2 tensors"));
  CHECK(contains(config_error({{{"PATH", files / "tensors.safetensors"}, {"TENSOR", "z"}}}), "z"));
  CHECK(contains(config_error({{{"PATH", five}, {"TENSOR", "z"}}}), "TENSOR"));
  CHECK(contains(config_error({{{"PATH", directory / "absent"}}}), "there is no file " + (directory / "absent")));
  CHECK(contains(config_error({}), "FILES"));
  CHECK(open({{{"PATH", directory / "six"}, {"KEY", "k"}}})->get_batch(std::vector<int64_t>{1}).has("k"));
}

TEST_CASE("TensorDataset says of an array that it cannot take what it holds") {
  const DataFiles files;
  if (!files) return;
  const std::pair<const char*, const char*> cases[] = {
      {"arrays/swapped.npy", "high byte first ('>i4'): save array.astype('<i4')"},
      {"arrays/text.npy", "elements of the type '<U1', which no tensor can have"},
      {"arrays/objects.npy", "Python objects ('|O'), which could run code and are never loaded"},
      {"arrays/records.npy", "records of several fields"},
      {"arrays/many.npz", "is no array of numpy.save, and as a safetensors file: "},
      {"images/a/rgb.png", "is no array of numpy.save, and as a safetensors file: "},
  };
  for (const auto& [name, reason] : cases) {
    const std::string text = config_error({{{"PATH", files / name}}});
    CAPTURE(text);
    CHECK(contains(text, files / name));
    CHECK(contains(text, reason));
  }
}

TEST_CASE("a damaged npy file is an error with its name and both numbers") {
  const TemporaryDirectory directory;
  const std::string good = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n";
  const std::pair<std::string, std::string> cases[] = {
      {npy(good, "1234567"), "cut off: its header promises 8 bytes of data, the file has 7"},
      {npy(good, "123456789"), "damaged: its header promises 8 bytes of data, the file has 9"},
      {npy(good, "").substr(0, 7), "cut off"},
      {npy(good, "").substr(0, 9), "cut off"},
      {npy(good, "", 2).substr(0, 11), "cut off"},
      {npy(good, "").substr(0, 30), "its header should have 58 bytes, 20 are there"},
      {npy(good, "12345678", 4), "version 4.0"},
      {npy("", ""), "its header should be a dictionary"},
      {npy("{", ""), "its header should be a dictionary"},
      {npy("{'descr': '<i4', 'shape': (2,)}", "12345678"), "its header should be a dictionary"},
      {npy("{'descr': '<i4', 'fortran_order': 0, 'shape': (2,)}", "12345678"), "its header should be a dictionary"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (-2,)}", ""), "its header should be a dictionary"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2", ""), "its header should be a dictionary"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2 2)}", ""), "its header should be a dictionary"},
      {npy("{'descr': '', 'fortran_order': False, 'shape': (2,)}", ""), "its header should be a dictionary"},
      {npy("{'other': 1}", ""), "its header should be a dictionary"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""), "its header should be"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (9223372036854775807,)}", ""), "more bytes than a file"},
      {npy("{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387,)}", ""), "promises 18446744073709548"},
  };
  for (const auto& [bytes, reason] : cases) {
    put_bytes(directory / "bad.npy", bytes);
    const std::string text = config_error({{{"PATH", directory / "bad.npy"}}});
    CAPTURE(text);
    CHECK(contains(text, directory / "bad.npy"));
    CHECK(contains(text, reason));
  }
  put_bytes(directory / "bad.npy", npy(good, "12345678"));
  CHECK(open({{{"PATH", directory / "bad.npy"}}})->size() == 2);
}
