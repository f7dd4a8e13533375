#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <zlib.h>

#include "gantry/dataset.h"
#include "plugin_under_test.h"
#include "unit/files.h"
#include "unit/messages.h"

using gantry::Batch;
using gantry::Dataset;

namespace {

std::string idx(int type, std::vector<uint32_t> shape, const std::string& bytes) {
  std::string file = {0, 0, static_cast<char>(type), static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift & 0xFF);
  }
  return file + bytes;
}

void write_gzip(const std::string& path, const std::string& bytes) {
  gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
}

gantry::Config config_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<gantry::Config> items;
  for (const auto& [key, path] : files)
    items.push_back(map_config({{"KEY", text_config(key)}, {"PATH", text_config(path)}}));
  return map_config({{"FILES", gantry::Config::list(std::move(items), {})}});
}

std::unique_ptr<Dataset> open(const std::vector<std::pair<std::string, std::string>>& files) {
  return PluginUnderTest("gantry-idx").build<Dataset>("IdxDataset", config_of(files));
}

std::string config_error(const std::vector<std::pair<std::string, std::string>>& files) {
  return PluginUnderTest("gantry-idx").config_error<Dataset>("IdxDataset", config_of(files));
}

const std::vector<int64_t> kPicked = {2, 0};

}  // namespace

TEST_CASE("IdxDataset reads every type of elements with the high byte first") {
  const TemporaryDirectory directory;
  struct Case {
    int type;
    at::ScalarType dtype;
    std::string bytes;  // of three samples of one number
    std::vector<double> picked;
  };
  const std::string floats("\x3f\xc0\0\0\xc0\0\0\0\x7f\x80\0\0", 12);  // 1.5, -2, infinity
  const std::string doubles("\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0\x3f\xb9\x99\x99\x99\x99\x99\x9a", 24);
  const Case cases[] = {
      {0x08, at::kByte, "\x01\x02\xff", {255, 1}},
      {0x09, at::kChar, "\x01\x02\xff", {-1, 1}},
      {0x0B, at::kShort, std::string("\x01\x02\0\0\xff\xfe", 6), {-2, 258}},
      {0x0C, at::kInt, std::string("\x01\x02\x03\x04\0\0\0\0\xff\xff\xff\xfe", 12), {-2, 16909060}},
      {0x0D, at::kFloat, floats, {HUGE_VAL, 1.5}},
      {0x0E, at::kDouble, doubles, {0.1, 1.5}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.type);
    put_bytes(directory / "file", idx(c.type, {3, 1}, c.bytes));
    const at::Tensor values = open({{"x", directory / "file"}})->get_batch(kPicked).tensor("x");
    CHECK((values.scalar_type() == c.dtype));
    CHECK(values.sizes() == at::IntArrayRef({2, 1}));
    CHECK(values.to(at::kDouble).view({2}).equal(at::tensor(c.picked, at::kDouble)));
  }
}

TEST_CASE("IdxDataset gives byte images a channel and labels as int64 from files that are gzipped or not") {
  const TemporaryDirectory directory;
  write_gzip(directory / "images", idx(8, {3, 2, 2}, "abcdefghijkl"));
  put_bytes(directory / "labels.gz", idx(0x0B, {3}, std::string("\0\x07\0\x08\xff\xff", 6)));  // not gzipped
  const auto dataset = open({{"picture", directory / "images"}, {"class", directory / "labels.gz"}});
  CHECK(dataset->size() == 3);
  const Batch batch = dataset->get_batch(kPicked);
  CHECK(batch.tensor("picture").equal(
      at::tensor({'i', 'j', 'k', 'l', 'a', 'b', 'c', 'd'}, at::kByte).view({2, 1, 2, 2})));
  CHECK(batch.tensor("class").equal(at::tensor({-1, 7}, at::kLong)));
  CHECK_THROWS_AS(dataset->get_batch(std::vector<int64_t>{3}), gantry::Error);
  CHECK_THROWS_AS(dataset->get_batch(std::vector<int64_t>{-1}), gantry::Error);
}

TEST_CASE("IdxDataset looks bytes of images up in a table and nothing else") {
  const TemporaryDirectory directory;
  put_bytes(directory / "images", idx(8, {3, 1, 2}, std::string("\0\1\2\3\4\5", 6)));
  put_bytes(directory / "labels", idx(8, {3}, std::string("\0\1\2", 3)));
  const auto dataset = open({{"img", directory / "images"}, {"label", directory / "labels"}});
  auto& lookup = dynamic_cast<gantry::LookupGather&>(*dataset);
  CHECK(lookup.lookup_channels("img") == 1);
  CHECK(lookup.lookup_channels("label") == 0);
  CHECK(lookup.lookup_channels("other") == 0);
  const at::Tensor table = at::arange(256, at::kFloat).mul(0.5).view({1, 256});
  CHECK_FALSE(lookup.set_lookup("label", table));
  REQUIRE(lookup.set_lookup("img", table));
  const Batch batch = dataset->get_batch(kPicked);
  CHECK(batch.tensor("img").equal(at::tensor({2.0, 2.5, 0.0, 0.5}, at::kFloat).view({2, 1, 1, 2})));
  CHECK(batch.tensor("label").equal(at::tensor({2, 0}, at::kLong)));
}

TEST_CASE("IdxDataset refuses files that are damaged or do not belong together") {
  const TemporaryDirectory directory;
  put_bytes(directory / "good", idx(8, {3}, "abc"));
  put_bytes(directory / "four", idx(8, {4}, "abcd"));
  CHECK(contains(config_error({{"a", directory / "good"}, {"b", directory / "four"}}),
                 (directory / "four") + " has 4 samples, " + (directory / "good") + " has 3"));
  CHECK(contains(config_error({{"a", directory / "good"}, {"a", directory / "good"}}), "KEY"));
  CHECK(contains(config_error({{"a", directory / "absent"}}), "there is no file " + (directory / "absent")));
  CHECK(contains(config_error({{"a", directory / ""}}), "there is no file"));
  CHECK(contains(config_error({}), "FILES"));

  const std::pair<std::string, std::string> damaged[] = {
      {"", "should have at least 4 bytes, the file has 0"},
      {std::string("\0\0\x08", 3), "at least 4 bytes, the file has 3"},
      {std::string("\0\0\x08\x02\0\0\0\x01", 8), "should have 12 bytes, the file has 8"},
      {std::string("\0\0\x0a\x01\0\0\0\x01z", 9), "no IDX file: it begins with 0x00000a01"},
      {std::string("\0\0\x08\0z", 5), "no IDX file: it begins with 0x00000800"},
      {"\x89PNG\r\n\x1a\n", "no IDX file: it begins with 0x89504e47"},
      {idx(0x0E, {3}, "abc"), "promises 24 bytes of data, the file has 3"},
      {idx(8, {3}, "abcd"), "goes on after the 3 bytes"},
      {idx(0x0E, {0xFFFFFFFF, 0xFFFFFFFF}, ""), "more bytes than a file can have"},
  };
  for (const auto& [bytes, reason] : damaged) {
    put_bytes(directory / "bad", bytes);
    const std::string text = config_error({{"a", directory / "bad"}});
    CAPTURE(text);
    CHECK(contains(text, directory / "bad"));
    CHECK(contains(text, reason));
  }
}
