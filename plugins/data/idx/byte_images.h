#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gantry::idx {

/// Images of one channel, held as bytes and given out in batches: as bytes or, once there is a table, as
/// table[byte], looked up in the one pass that gathers the batch.
class ByteImages final {
 public:
  ByteImages() = default;
  ByteImages(std::vector<uint8_t> bytes, int64_t count, int64_t height, int64_t width);

  int64_t count() const { return count_; }
  /// `table`: 256 values of any dtype on the CPU.
  void set_table(const at::Tensor& table);
  /// [N, 1, height, width]. Any thread. Throws gantry::Error for an index that does not exist.
  at::Tensor gather(std::span<const int64_t> indices) const;

 private:
  std::vector<uint8_t> bytes_;
  int64_t count_ = 0, height_ = 0, width_ = 0;
  at::Tensor table_;
};

}  // namespace gantry::idx
