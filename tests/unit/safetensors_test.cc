#include "gantry/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

#include "unit/files.h"
#include "unit/messages.h"

using gantry::SafetensorsFile;
using gantry::write_safetensors;

namespace {

using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.contiguous();
  return {static_cast<const char*>(values.const_data_ptr()), static_cast<std::size_t>(values.nbytes())};
}

void check_same(const at::Tensor& found, const at::Tensor& expected) {
  CHECK((found.scalar_type() == expected.scalar_type()));
  CHECK((found.sizes() == expected.sizes()));
  CHECK((bytes_of(found) == bytes_of(expected)));
}

std::vector<std::string> names(const SafetensorsFile& file) {
  std::vector<std::string> result;
  for (const SafetensorsFile::Entry& entry : file.entries()) result.push_back(entry.name);
  return result;
}

/// Bytes 0, 1, 2, ... as a tensor of a type; each element differs from its neighbours.
at::Tensor pattern(at::ScalarType dtype, at::IntArrayRef shape) {
  at::Tensor tensor = at::empty(shape, dtype);
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 % 113);
  return tensor;
}

constexpr at::ScalarType kTypes[] = {at::kDouble,
                                     at::kFloat,
                                     at::kHalf,
                                     at::kBFloat16,
                                     at::kFloat8_e4m3fn,
                                     at::kFloat8_e5m2,
                                     at::kLong,
                                     at::kInt,
                                     at::kShort,
                                     at::kChar,
                                     at::ScalarType::UInt64,
                                     at::ScalarType::UInt32,
                                     at::ScalarType::UInt16,
                                     at::kByte,
                                     at::kComplexFloat};

}  // namespace

TEST_CASE("tensors of every type read back with the same type and shape and bytes") {
  const TemporaryDirectory directory;
  Tensors tensors;
  for (const at::ScalarType type : kTypes) tensors.emplace_back(c10::toString(type), pattern(type, {3, 5}));
  tensors.emplace_back("bool", at::arange(6, at::kLong).remainder(2).to(at::kBool));
  write_safetensors(directory / "a.safetensors", tensors);
  const SafetensorsFile file = SafetensorsFile::open(directory / "a.safetensors");
  CHECK(file.entries().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    CAPTURE(name);
    check_same(file.tensor(name), tensor);
  }
  CHECK(bytes_of(file.tensor("bool")) == std::string("\0\1\0\1\0\1", 6));
}

TEST_CASE("tensors without dimensions and without elements read back") {
  const TemporaryDirectory directory;
  const Tensors tensors = {{"scalar", at::full({}, 2.5, at::kDouble)},
                           {"none", at::empty({0}, at::kFloat)},
                           {"flat", at::empty({3, 0, 2}, at::kFloat)},
                           {"between", at::ones({2}, at::kFloat)}};
  write_safetensors(directory / "a.safetensors", tensors);
  const SafetensorsFile file = SafetensorsFile::open(directory / "a.safetensors");
  for (const auto& [name, tensor] : tensors) {
    CAPTURE(name);
    check_same(file.tensor(name), tensor);
  }
}

TEST_CASE("tensors that are not contiguous are written by their values") {
  const TemporaryDirectory directory;
  const at::Tensor grid = at::arange(12, at::kFloat).reshape({3, 4});
  const at::Tensor complex = pattern(at::kComplexFloat, {3}).conj();
  write_safetensors(directory / "a.safetensors", {{"turned", grid.t()},
                                                  {"column", grid.select(1, 2)},
                                                  {"row", grid.select(0, 1)},
                                                  {"repeated", at::ones({1}).expand({5})},
                                                  {"conjugate", complex},
                                                  {"needs a gradient", at::ones({2}).requires_grad_()}});
  const SafetensorsFile file = SafetensorsFile::open(directory / "a.safetensors");
  check_same(file.tensor("turned"), grid.t());
  CHECK(file.tensor("turned").is_contiguous());
  const float column[] = {2, 6, 10}, row[] = {4, 5, 6, 7};
  CHECK(std::memcmp(file.tensor("column").const_data_ptr(), column, sizeof column) == 0);
  CHECK(std::memcmp(file.tensor("row").const_data_ptr(), row, sizeof row) == 0);
  check_same(file.tensor("repeated"), at::ones({5}));
  check_same(file.tensor("conjugate"), complex.resolve_conj());
  CHECK_FALSE(file.tensor("needs a gradient").requires_grad());
}

TEST_CASE("the bytes of a file are those that the format prescribes") {
  const TemporaryDirectory directory;
  const auto written = write_safetensors(directory / "a.safetensors",
                                         {{"b", at::full({2}, 3, at::kByte)}, {"a", at::full({1}, 1.0, at::kFloat)}},
                                         {{"format", "pt"}, {"a\"key", "two\nlines"}});
  const std::string json =
      R"({"__metadata__":{"format":"pt","a\"key":"two\nlines"},)"
      R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})";
  const std::string padding((8 - json.size() % 8) % 8, ' ');
  const std::string expected = std::string(1, static_cast<char>(json.size() + padding.size())) + std::string(7, '\0') +
                               json + padding + std::string("\0\0\x80\x3f\3\3", 6);
  CHECK(bytes_of(directory / "a.safetensors") == expected);
  CHECK(written.size == static_cast<int64_t>(expected.size()));
  const SafetensorsFile file = SafetensorsFile::open(directory / "a.safetensors");
  CHECK(file.size() == written.size);
  REQUIRE(file.metadata().size() == 2);
  CHECK(file.metadata()[0] == std::pair<std::string, std::string>("format", "pt"));
  CHECK(file.metadata()[1] == std::pair<std::string, std::string>("a\"key", "two\nlines"));
}

TEST_CASE("a written file is described by its size and XXH3") {
  const TemporaryDirectory directory;
  const auto written = write_safetensors(directory / "a.safetensors", {});
  CHECK(bytes_of(directory / "a.safetensors") == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  CHECK(written.size == 16);
  CHECK(written.xxh3 == "2e67a4a6367361c0");  // xxhsum -H3
}

TEST_CASE("the order of the tensors given makes no difference and larger elements come first") {
  const TemporaryDirectory directory;
  Tensors tensors = {{"z", at::ones({3}, at::kLong)},  {"a", at::ones({3}, at::kByte)}, {"m", at::ones({3}, at::kHalf)},
                     {"b", at::ones({3}, at::kFloat)}, {"c", at::ones({3}, at::kInt)},  {"y", at::ones({1}, at::kLong)},
                     {"B", at::ones({5}, at::kBool)}};
  const auto first = write_safetensors(directory / "1", tensors);
  std::reverse(tensors.begin(), tensors.end());
  const auto second = write_safetensors(directory / "2", tensors);
  CHECK(bytes_of(directory / "1") == bytes_of(directory / "2"));
  CHECK(first.xxh3 == second.xxh3);
  const SafetensorsFile file = SafetensorsFile::open(directory / "1");
  CHECK(names(file) == std::vector<std::string>{"y", "z", "b", "c", "m", "B", "a"});
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    CAPTURE(entry.name);
    const auto place = static_cast<std::size_t>(file.size() - file.entries().back().end + entry.begin);
    CHECK(place % c10::elementSize(entry.dtype) == 0);
  }
}

TEST_CASE("a tensor of a file outlives the file object and the name in the directory") {
  const TemporaryDirectory directory;
  write_safetensors(directory / "a.safetensors", {{"x", at::arange(1000, at::kInt)}});
  at::Tensor tensor;
  {
    std::optional<SafetensorsFile> file = SafetensorsFile::open(directory / "a.safetensors");
    tensor = file->tensor("x").slice(0, 500);
    file.reset();
    std::filesystem::remove(directory / "a.safetensors");
  }
  check_same(tensor, at::arange(500, 1000, at::kInt));
}

TEST_CASE("tensors of a file share its mapping") {
  const TemporaryDirectory directory;
  write_safetensors(directory / "a.safetensors", {{"x", at::arange(1000, at::kInt)}});
  const SafetensorsFile file = SafetensorsFile::open(directory / "a.safetensors");
  CHECK(file.tensor("x").const_data_ptr() == file.tensor("x").const_data_ptr());
}

TEST_CASE("a file is found by its names alone") {
  const TemporaryDirectory directory;
  write_safetensors(directory / "a.safetensors", {{"b", at::ones({1})}, {"a", at::zeros({2})}, {"ü", at::zeros({3})}});
  const SafetensorsFile file = SafetensorsFile::open(directory / "a.safetensors");
  REQUIRE(file.find("a") != nullptr);
  CHECK(file.find("a")->shape == std::vector<int64_t>{2});
  REQUIRE(file.find("ü") != nullptr);
  CHECK(file.find("ü")->shape == std::vector<int64_t>{3});
  CHECK(file.find("aa") == nullptr);
  CHECK(file.find("") == nullptr);
  const std::string message = message_of([&] { file.tensor("c"); });
  CHECK(contains(message, directory / "a.safetensors"));
  CHECK(contains(message, "'c'"));
}

TEST_CASE("what the format cannot hold is refused by its name before a file is touched") {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  const auto message = [&](const std::string& name, const at::Tensor& tensor) {
    return message_of([&] { write_safetensors(path, {{"fine", at::ones({1})}, {name, tensor}}); });
  };
  CHECK(contains(message("x", {}), "'x' is an undefined tensor"));
  CHECK(contains(message("x", at::ones({1}, at::kComplexDouble)), "'x' is ComplexDouble"));
  CHECK(contains(message("x", at::ones({2}).to_sparse()), "'x' is a sparse tensor"));
  CHECK(contains(message("x", at::empty({2}, at::TensorOptions(at::kMeta))), "meta"));
  CHECK(contains(message("", at::ones({1})), "the name of tensor 2 is empty"));
  CHECK(contains(message("__metadata__", at::ones({1})), "the format's own"));
  CHECK(contains(message("a\x1b[31m", at::ones({1})), "control character at its byte 2"));
  CHECK(contains(message("a\xff", at::ones({1})), "no UTF-8 at its byte 2"));
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(contains(message_of<std::logic_error>([&] {
                   write_safetensors(path, {{"x", at::ones({1})}, {"x", at::ones({1}, at::kLong)}});
                 }),
                 "two tensors are named 'x'"));
  CHECK(contains(message_of<std::logic_error>([&] {
                   write_safetensors(path, {}, {{"k", "1"}, {"k", "2"}});
                 }),
                 "\"k\""));
}

TEST_CASE("a file that cannot be written is named with the reason of the system") {
  const TemporaryDirectory directory;
  const std::string path = directory / "missing/a.safetensors";
  CHECK(message_of([&] { write_safetensors(path, {}); }) == "cannot write " + path + ": No such file or directory");
}

TEST_CASE("a full disk is reported with the bytes needed and free") {
  const std::string message = message_of([] {
    write_safetensors("/dev/full", {{"x", at::ones({1000, 1000}, at::kFloat)}});
  });
  CHECK(contains(message, "cannot write /dev/full: No space left on device (needs 4.0 MB more, "));
  CHECK(contains(message, " free)"));
}

TEST_CASE("an existing file is replaced and not left with its former end") {
  const TemporaryDirectory directory;
  write_safetensors(directory / "a.safetensors", {{"x", at::ones({1000})}});
  write_safetensors(directory / "a.safetensors", {{"y", at::zeros({2})}});
  const SafetensorsFile file = SafetensorsFile::open(directory / "a.safetensors");
  CHECK(names(file) == std::vector<std::string>{"y"});
  check_same(file.tensor("y"), at::zeros({2}));
}
