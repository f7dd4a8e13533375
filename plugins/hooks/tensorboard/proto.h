#pragma once

#include <gantry/json.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

/// A protocol buffer message that is being encoded, field by field: https://protobuf.dev/programming-guides/encoding/.
class Message final {
 public:
  Message& integer(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& number(int field, double value) {
    key(field, 1);
    return fixed(value);
  }
  Message& float32(int field, float value) {
    key(field, 5);
    return fixed(value);
  }
  Message& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  /// Readers refuse a whole message for one string that is no UTF-8: such bytes become U+FFFD.
  Message& text(int field, std::string_view value) {
    std::string clean;
    while (!value.empty()) {
      const std::size_t length = gantry::utf8_length(value);
      clean += length == 0 ? std::string_view("\xef\xbf\xbd") : value.substr(0, length);
      value.remove_prefix(std::max<std::size_t>(1, length));
    }
    return bytes(field, clean);
  }
  Message& message(int field, const Message& value) { return bytes(field, value.bytes_); }

  const std::string& encoded() const { return bytes_; }

 private:
  void key(int field, int wire_type) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <class T>
  Message& fixed(T value) {  // the format is little-endian, as this machine is
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
    return *this;
  }

  std::string bytes_;
};
