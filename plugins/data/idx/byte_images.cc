#include "byte_images.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry::idx {

namespace {

// Element is an unsigned integer of the table's element size: values are moved, never computed with. The
// hottest loop of a small model's training: eight bytes are loaded at once, so that the loads that remain are
// those of the table.
template <class Element>
void look_up(const uint8_t* in, int64_t size, const Element* table, Element* out) {
  int64_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t bytes;
    std::memcpy(&bytes, in + i, sizeof bytes);
    for (int b = 0; b < 8; ++b) out[i + b] = table[bytes >> (8 * b) & 0xFF];
  }
  for (; i < size; ++i) out[i] = table[in[i]];
}

template <class Element>
void look_up_all(const uint8_t* bytes, std::span<const int64_t> indices, int64_t size, const at::Tensor& table,
                 at::Tensor& out) {
  const auto* values = static_cast<const Element*>(table.const_data_ptr());
  auto* to = static_cast<Element*>(out.mutable_data_ptr());
  constexpr int64_t kCacheLine = 64;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    // In a shuffled order the next image is nowhere near: asking for it early halves the time.
    if (i + 1 < indices.size()) {
      const uint8_t* next = bytes + indices[i + 1] * size;
      for (int64_t offset = 0; offset < size; offset += kCacheLine) __builtin_prefetch(next + offset);
    }
    look_up(bytes + indices[i] * size, size, values, to);
    to += size;
  }
}

}  // namespace

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "look_up takes bytes from the low end of a word");

ByteImages::ByteImages(std::vector<uint8_t> bytes, int64_t count, int64_t height, int64_t width)
    : bytes_(std::move(bytes)), count_(count), height_(height), width_(width) {
  if (static_cast<int64_t>(bytes_.size()) != count * height * width) {
    throw std::logic_error("the bytes of the images do not fill their shape");
  }
}

void ByteImages::set_table(const at::Tensor& table) { table_ = table.contiguous(); }

at::Tensor ByteImages::gather(std::span<const int64_t> indices) const {
  for (const int64_t index : indices) {
    if (index < 0 || index >= count_) throw Error(cat("there is no image ", index, "; there are ", count_));
  }
  const int64_t size = height_ * width_;
  const auto dtype = table_.defined() ? table_.scalar_type() : at::kByte;
  at::Tensor out = at::empty({static_cast<int64_t>(indices.size()), 1, height_, width_}, dtype);
  if (!table_.defined()) {
    auto* to = out.mutable_data_ptr<uint8_t>();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      std::memcpy(to + static_cast<int64_t>(i) * size, bytes_.data() + indices[i] * size,
                  static_cast<std::size_t>(size));
    }
    return out;
  }
  switch (table_.element_size()) {
    case 1:
      look_up_all<uint8_t>(bytes_.data(), indices, size, table_, out);
      break;
    case 2:
      look_up_all<uint16_t>(bytes_.data(), indices, size, table_, out);
      break;
    case 4:
      look_up_all<uint32_t>(bytes_.data(), indices, size, table_, out);
      break;
    case 8:
      look_up_all<uint64_t>(bytes_.data(), indices, size, table_, out);
      break;
    default:
      throw std::logic_error("a table's elements have 1, 2, 4 or 8 bytes");
  }
  return out;
}

}  // namespace gantry::idx
