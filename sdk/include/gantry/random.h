#pragma once

#include <array>
#include <cstdint>

#include "gantry/export.h"

namespace gantry {

/// Random numbers as a pure function of (seed, position, stream): Philox4x32-10 (Salmon et al., "Parallel
/// random numbers: as easy as 1, 2, 3", SC 2011). The same on every machine, in any order, on any thread,
/// and nothing to save. One object per use: creating one costs nothing.
class GANTRY_API CounterRng final {
 public:
  CounterRng(uint64_t seed, uint64_t position, uint32_t stream);
  uint32_t next_u32();
  uint64_t next_u64();
  double uniform();                ///< in [0, 1), 53 bits
  uint64_t below(uint64_t bound);  ///< in [0, bound), without bias; bound > 0

 private:
  void refill();
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace gantry
