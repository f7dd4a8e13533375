#include "record.h"

#include <array>
#include <cstring>

namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

constexpr std::size_t kHead = sizeof(uint64_t) + sizeof(uint32_t);

template <class T>
std::string_view raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
T read(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::string record_of(std::string_view data) {
  const auto length = static_cast<uint64_t>(data.size());
  const uint32_t length_crc = masked_crc32c(raw(length)), data_crc = masked_crc32c(data);
  std::string record;
  record.reserve(kHead + data.size() + sizeof data_crc);
  for (const std::string_view part : {raw(length), raw(length_crc), data, raw(data_crc)}) record += part;
  return record;
}

std::size_t record_size(std::string_view bytes) {
  if (bytes.size() < kHead) return 0;
  const auto length = read<uint64_t>(bytes);
  if (read<uint32_t>(bytes.substr(sizeof length)) != masked_crc32c(bytes.substr(0, sizeof length))) return 0;
  const std::string_view rest = bytes.substr(kHead);
  if (rest.size() < sizeof(uint32_t) || rest.size() - sizeof(uint32_t) < length) return 0;
  if (read<uint32_t>(rest.substr(length)) != masked_crc32c(rest.substr(0, length))) return 0;
  return kHead + length + sizeof(uint32_t);
}
