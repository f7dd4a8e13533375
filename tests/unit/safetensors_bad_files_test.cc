#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "gantry/safetensors.h"
#include "unit/files.h"
#include "unit/messages.h"

using gantry::SafetensorsFile;

namespace {

std::string with_length(const std::string& json, uint64_t length, const std::string& data) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(length >> shift & 0xff);
  return bytes + json + data;
}

std::string with_length(const std::string& json, const std::string& data) {
  return with_length(json, json.size(), data);
}

/// What opening a file of these bytes says behind the file's name.
std::string refusal(const std::string& bytes) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x.safetensors";
  put_bytes(path, bytes);
  const std::string message = message_of([&] { SafetensorsFile::open(path); });
  if (!message.starts_with(path + ": ")) return "without the file's name: " + message;
  return message.substr(path.size() + 2);
}

std::string refusal(const std::string& json, std::size_t data_bytes) {
  return refusal(with_length(json, std::string(data_bytes, 'd')));
}

std::string entry(const std::string& name, const std::string& shape, int64_t begin, int64_t end,
                  const std::string& dtype = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("a good file made by hand opens") {
  const TemporaryDirectory directory;
  put_bytes(directory / "x", with_length("{" + entry("b", "[2]", 4, 12) + " ,\n " + entry("a", "[]", 0, 4) + "}   ",
                                         std::string(12, 'd')));
  const SafetensorsFile file = SafetensorsFile::open(directory / "x");
  REQUIRE(file.entries().size() == 2);
  CHECK(file.entries()[0].name == "a");
  CHECK(file.entries()[1].name == "b");
}

TEST_CASE("tensors that overlap or leave holes are refused with their names and bytes") {
  CHECK(refusal("{" + entry("a", "[16]", 64, 128) + "," + entry("b", "[8]", 96, 128) + "," + entry("c", "[16]", 0, 64) +
                    "}",
                128) == "'b' begins at byte 96, inside 'a' (64 to 128)");
  CHECK(refusal("{" + entry("a", "[2]", 0, 8) + "," + entry("b", "[2]", 0, 8) + "}", 8) ==
        "'b' begins at byte 0, inside 'a' (0 to 8)");
  CHECK(refusal("{" + entry("a", "[2]", 0, 8) + "," + entry("e", "[0]", 4, 4) + "}", 8) ==
        "'e' begins at byte 4, inside 'a' (0 to 8)");
  CHECK(refusal("{" + entry("a", "[2]", 0, 8) + "," + entry("b", "[2]", 12, 20) + "}", 20) ==
        "bytes 8 to 12, before 'b', belong to no tensor");
  CHECK(refusal("{" + entry("a", "[2]", 4, 12) + "}", 12) == "bytes 0 to 4, before 'a', belong to no tensor");
}

TEST_CASE("tensors that end before or behind the file's end are refused") {
  CHECK(refusal("{" + entry("a", "[2]", 0, 8) + "}", 7) ==
        "'a' ends at byte 8, but the data behind the header end at byte 7: the file is truncated");
  CHECK(refusal("{" + entry("a", "[2]", 0, 8) + "}", 9) ==
        "the tensors end at byte 8, but the data behind the header end at byte 9");
  CHECK(refusal("{}", 1) == "the tensors end at byte 0, but the data behind the header end at byte 1");
}

TEST_CASE("a tensor whose bytes do not fit its shape is refused with both") {
  CHECK(refusal("{" + entry("a", "[2, 3]", 0, 20) + "}", 20) ==
        "'a' of F32 [2, 3] takes 24 bytes, but its data_offsets are 0 and 20");
  CHECK(refusal("{" + entry("a", "[2]", 8, 0) + "}", 8) ==
        "'a' of F32 [2] takes 8 bytes, but its data_offsets are 8 and 0");
}

TEST_CASE("shapes whose bytes overflow are refused also where a zero makes them empty") {
  const std::string shape = "[4611686018427387904, 4611686018427387904";
  CHECK(contains(refusal("{" + entry("a", shape + "]", 0, 0) + "}", 0), "'a' has the shape"));
  CHECK(contains(refusal("{" + entry("a", shape + ", 0]", 0, 0) + "}", 0), "cannot be counted"));
  CHECK(contains(refusal("{" + entry("a", "[0, " + shape.substr(1) + "]", 0, 0) + "}", 0), "cannot be counted"));
  CHECK(contains(refusal("{" + entry("a", "[4611686018427387904]", 0, 0) + "}", 0), "cannot be counted"));
}

TEST_CASE("numbers that are negative or broken or too large are refused") {
  CHECK(refusal("{" + entry("a", "[-1]", 0, 4) + "}", 4) ==
        "shape of 'a' must hold whole numbers, 0 or more, of 63 bits, not -1");
  CHECK(contains(refusal("{" + entry("a", "[1.5]", 0, 4) + "}", 4), "not 1.5"));
  CHECK(contains(refusal("{" + entry("a", "[9223372036854775808]", 0, 4) + "}", 4), "not 9223372036854775808"));
  CHECK(contains(refusal("{" + entry("a", "[1]", -4, 0) + "}", 4), "data_offsets of 'a' must hold"));
  CHECK(contains(refusal("{" + entry("a", "[\"2\"]", 0, 8) + "}", 8), "not the text '2'"));
  CHECK(contains(refusal("{" + entry("a", "[1e999]", 0, 4) + "}", 4), "invalid JSON"));
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ",1";
  CHECK(refusal("{" + entry("a", many + "]", 0, 4) + "}", 4) == "shape of 'a' has more than 64 numbers");
}

TEST_CASE("names that are there twice are refused") {
  CHECK(refusal("{" + entry("a", "[1]", 0, 4) + "," + entry("a", "[1]", 4, 8) + "}", 8) == "'a' is there twice");
  CHECK(contains(refusal(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4), "'dtype'"));
  CHECK(contains(refusal(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "'k' is there twice"));
  CHECK(contains(refusal(R"({"__metadata__":{},"__metadata__":{}})", 0), "'__metadata__' is there twice"));
}

TEST_CASE("fields that are missing or unknown or of another kind are refused") {
  CHECK(refusal(R"({"a":{"dtype":"F32","shape":[1]}})", 4) == "'a' has no data_offsets");
  CHECK(refusal(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4) == "'a' has no shape");
  CHECK(refusal(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4) == "'a' has no dtype");
  CHECK(refusal(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{}})", 4) == "'a' has no dtype");
  CHECK(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4) ==
        "'a' has a field 'x'; known: dtype, shape, data_offsets");
  CHECK(contains(refusal("{" + entry("a", "[1]", 0, 4, "F4") + "}", 4), "'a' has the dtype 'F4'; known: F64, F32"));
  CHECK(contains(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4),
                 "must hold 2 numbers, not 3"));
  CHECK(refusal(R"({"a":{"dtype":"F32","shape":4}})", 4) == "shape of 'a' must be a list of numbers, not 4");
  CHECK(refusal(R"({"a":{"dtype":[1]}})", 4) == "dtype of 'a' must be a text, not a list");
  CHECK(refusal(R"({"a":[1]})", 4) == "'a' must be an object, not a list");
  CHECK(refusal(R"({"a":null})", 4) == "'a' must be an object, not null");
  CHECK(refusal(R"({"__metadata__":{"k":1}})", 0) == "__metadata__'s 'k' must be a text, not 1");
  CHECK(refusal(R"({"__metadata__":[]})", 0) == "__metadata__ must be an object, not a list");
}

TEST_CASE("nesting is limited however deep it goes") {
  CHECK(contains(refusal(R"({"a":{"shape":[[1]]}})", 0), "nested more than 3 deep"));
  CHECK(contains(refusal(R"({"a":{"shape":)" + std::string(1'000'000, '['), 0), "nested more than 3 deep"));
  CHECK(contains(refusal(R"({"a":{"b":)" + std::string(1'000, '{'), 0), "'a' has a field 'b'"));
}

TEST_CASE("a header that is no JSON object is refused") {
  const std::string no_object = "its header does not begin with '{': it is no safetensors file";
  CHECK(refusal("", 0) == no_object);
  CHECK(refusal("[]", 0) == no_object);
  CHECK(refusal(" {}", 0) == no_object);
  CHECK(refusal("\xef\xbb\xbf{}", 0) == no_object);
  CHECK(refusal("{", 0) == "invalid JSON at byte 2");
  CHECK(contains(refusal("{}x", 0), "invalid JSON at byte 3"));
  CHECK(contains(refusal(std::string("{}\0{", 4), 0), "invalid JSON at byte 3"));
  CHECK(contains(refusal("{'a':1}", 0), "invalid JSON at byte 2"));
  CHECK(contains(refusal("{\"a\xff\":{}}", 0), "invalid JSON at byte 4"));
}

TEST_CASE("names with control characters are refused and never printed") {
  for (const char* name : {"a\\u001b[31m", "a\\u0000", "a\\n", "a\\u007f", "a\\u009b31m"}) {
    const std::string message = refusal("{" + entry(name, "[1]", 0, 4) + "}", 4);
    CHECK(message == "the name of tensor 1 has a control character at its byte 2");
  }
  CHECK(refusal("{" + entry("", "[1]", 0, 4) + "}", 4) == "the name of tensor 1 is empty");
  const std::string field = refusal(R"({"a":{"\u001b[31m":1}})", 0);
  CHECK_FALSE(contains(field, "\x1b"));
}

TEST_CASE("a header longer than the file or the limit is refused with both numbers") {
  CHECK(
      refusal(with_length("{}", 1'000, "")) ==
      "its header should take 1000 bytes from byte 8 on, but the file has 10: it is truncated, or no safetensors file");
  CHECK(contains(refusal(with_length("{}", 100'000'001, "")), "100000001 bytes, more than 100000000"));
  CHECK(contains(refusal(with_length("{}", UINT64_MAX, "")), "more than 100000000, the most allowed"));
}

TEST_CASE("files too short for a header and what is no file are refused") {
  CHECK(refusal("") == "it has 0 bytes, too few for a safetensors file");
  CHECK(refusal("\x02\0\0") == "it has 1 byte, too few for a safetensors file");
  const TemporaryDirectory directory;
  CHECK(message_of([&] { SafetensorsFile::open(directory / "no"); }) ==
        "cannot read " + (directory / "no") + ": No such file or directory");
  CHECK(contains(message_of([&] { SafetensorsFile::open(directory / ""); }), "not a regular file"));
}

TEST_CASE("a file cut anywhere is refused") {
  const TemporaryDirectory directory;
  gantry::write_safetensors(directory / "x", {{"a", at::arange(4)}, {"b", at::ones({3})}}, {{"format", "pt"}});
  const std::string whole = bytes_of(directory / "x");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put_bytes(directory / "x", whole.substr(0, size));
    CAPTURE(size);
    CHECK(message_of([&] { SafetensorsFile::open(directory / "x"); }) != "nothing was thrown");
  }
}

TEST_CASE("a tensor that its file does not align can be used") {
  const TemporaryDirectory directory;
  const double values[] = {1.5, -2.25};
  const std::string data = "d" + std::string(reinterpret_cast<const char*>(values), sizeof values);
  std::string json = "{" + entry("b", "[1]", 0, 1, "U8") + "," + entry("a", "[2]", 1, 17, "F64") + "}";
  for (int shift = 0; shift < 8; ++shift, json += ' ') {
    put_bytes(directory / "x", with_length(json, data));
    const at::Tensor tensor = SafetensorsFile::open(directory / "x").tensor("a");
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % sizeof(double) == 0);
    CHECK(std::memcmp(tensor.const_data_ptr(), values, sizeof values) == 0);
  }
}

TEST_CASE("files changed at random open or are refused and never crash") {
  const TemporaryDirectory directory;
  gantry::write_safetensors(directory / "x",
                            {{"a", at::arange(3)}, {"b", at::ones({2, 2})}, {"c", at::ones({5}, at::kBool)}},
                            {{"format", "pt"}});
  const std::string whole = bytes_of(directory / "x");
  const std::string pieces[] = {"{", "}", "[", "]", ",", ":", "\"", "0", "9", "-", "e", "\\", "null", "shape", "\xff"};
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return random() % n; };
  int opened = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::size_t place = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[place] = static_cast<char>(below(256));
          break;
        case 1:
          bytes.replace(place, 1, pieces[below(std::size(pieces))]);
          break;
        case 2:
          bytes.erase(place, 1 + below(4));
          break;
        default:
          bytes.insert(place, bytes.substr(below(bytes.size()), below(20)));
      }
      if (bytes.size() < 2) break;
    }
    put_bytes(directory / "x", bytes);
    try {
      const SafetensorsFile file = SafetensorsFile::open(directory / "x");
      for (const SafetensorsFile::Entry& found : file.entries()) {
        const at::Tensor tensor = file.tensor(found.name);
        std::string copy(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
        CHECK(static_cast<int64_t>(copy.size()) == found.end - found.begin);
      }
      ++opened;
    } catch (const gantry::Error& error) {
      CHECK_FALSE(std::string(error.what()).empty());
      ++refused;
    }
  }
  CHECK(opened > 20);
  CHECK(refused > 1000);
}
