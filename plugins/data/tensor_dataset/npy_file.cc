#include "npy_file.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string_view>
#include <vector>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry::tensor_dataset {

namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

// The header: a dictionary as Python prints it, {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
struct Header {
  std::string descr;  // empty: not a plain type
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    int seen = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        seen |= 1;
        if (peek() != '\'' && peek() != '"') return header;
        header.descr = string();
      } else if (key == "fortran_order") {
        seen |= 2;
        header.fortran_order = boolean();
      } else if (key == "shape") {
        seen |= 4;
        header.shape = tuple();
      } else {
        fail();
      }
      if (!take(',') && peek() != '}') fail();
    }
    if (seen != 7 || header.descr.empty()) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(cat(path_, " is damaged: its header should be a dictionary of descr, fortran_order and shape"));
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail();
    const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(text);
  }
  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail();
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect('(');
    while (!take(')')) {
      numbers.push_back(number());
      take('L');  // of Python 2
      if (!take(',') && peek() != ')') fail();
    }
    return numbers;
  }
  int64_t number() {
    if (peek() < '0' || peek() > '9') fail();
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
        fail();
      }
    }
    return value;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

struct Type {
  std::string_view descr;  // without the order of bytes
  at::ScalarType dtype;
};
constexpr Type kTypes[] = {
    {"b1", at::kBool},         {"i1", at::kChar},           {"i2", at::kShort},  {"i4", at::kInt},
    {"i8", at::kLong},         {"u1", at::kByte},           {"u2", at::kUInt16}, {"u4", at::kUInt32},
    {"u8", at::kUInt64},       {"f2", at::kHalf},           {"f4", at::kFloat},  {"f8", at::kDouble},
    {"c8", at::kComplexFloat}, {"c16", at::kComplexDouble},
};

at::ScalarType dtype_of(const std::string& path, const std::string& descr) {
  if (descr.empty()) throw Error(cat(path, " holds records of several fields: save each field as an array of its own"));
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  const bool swapped = descr[0] == '>';
  if (descr == "|O" || descr == "O") {
    throw Error(cat(path, " holds Python objects ('", descr,
                    "'), which could run code and are never loaded: ", "save an array of numbers"));
  }
  const std::string_view type = std::string_view(descr).substr(1);
  const auto known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.descr == type; });
  if (known == std::end(kTypes) || (!swapped && descr[0] != '<' && descr[0] != '|'))
    throw Error(cat(path, " holds elements of the type '", descr, "', which no tensor can have"));
  if (swapped) {
    throw Error(cat(path, " holds elements with their high byte first ('", descr, "'): save array.astype('<", type,
                    "') instead"));
  }
  return known->dtype;
}

std::size_t read(std::ifstream& file, void* to, std::size_t size) {
  file.read(static_cast<char*>(to), static_cast<std::streamsize>(size));
  return static_cast<std::size_t>(file.gcount());
}

}  // namespace

bool is_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(kMagic.size(), '\0');
  return read(file, begin.data(), begin.size()) == begin.size() && begin == kMagic;
}

at::Tensor read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(cat("cannot read ", path));
  file.seekg(0, std::ios::end);
  const auto file_size = static_cast<int64_t>(file.tellg());
  file.seekg(0);

  unsigned char begin[12] = {};
  std::size_t at = 8;
  if (read(file, begin, at) != at) throw Error(cat(path, " is cut off: it ends in its header"));
  if (begin[6] < 1 || begin[6] > 3) {
    throw Error(cat(path, " is of version ", int{begin[6]}, ".", int{begin[7]},
                    " of NumPy's format; versions 1 to 3 are known"));
  }
  const std::size_t length_bytes = begin[6] == 1 ? 2 : 4;
  if (read(file, begin + at, length_bytes) != length_bytes)
    throw Error(cat(path, " is cut off: it ends in its header"));
  int64_t header_size = 0;
  for (std::size_t i = length_bytes; i-- > 0;) header_size = header_size << 8 | begin[at + i];
  at += length_bytes;
  if (header_size > file_size - static_cast<int64_t>(at)) {
    throw Error(cat(path, " is cut off: its header should have ", header_size, " bytes, ",
                    file_size - static_cast<int64_t>(at), " are there"));
  }
  std::string text(static_cast<std::size_t>(header_size), '\0');
  if (read(file, text.data(), text.size()) != text.size()) throw Error(cat("cannot read ", path));
  Header header = HeaderParser(path, text).parse();
  const at::ScalarType dtype = dtype_of(path, header.descr);

  // Before memory is taken: a header can promise anything.
  int64_t promised = static_cast<int64_t>(at::elementSize(dtype));
  for (const int64_t extent : header.shape) {
    if (__builtin_mul_overflow(promised, extent, &promised))
      throw Error(cat(path, " is damaged: its header promises more bytes than a file can have"));
  }
  const int64_t there = file_size - static_cast<int64_t>(at) - header_size;
  if (promised != there) {
    throw Error(cat(path, " is ", there < promised ? "cut off" : "damaged", ": its header promises ", promised,
                    " bytes of data, the file has ", there));
  }
  if (header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  at::Tensor tensor = at::empty(header.shape, dtype);
  if (read(file, tensor.mutable_data_ptr(), static_cast<std::size_t>(promised)) != static_cast<std::size_t>(promised))
    throw Error(cat("cannot read ", path));
  if (!header.fortran_order) return tensor;
  std::vector<int64_t> reversed(header.shape.size());
  for (std::size_t d = 0; d < reversed.size(); ++d) reversed[d] = static_cast<int64_t>(reversed.size() - 1 - d);
  return tensor.permute(reversed).contiguous();
}

}  // namespace gantry::tensor_dataset
