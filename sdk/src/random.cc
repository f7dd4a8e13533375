#include "gantry/random.h"

#include <stdexcept>

namespace gantry {

CounterRng::CounterRng(uint64_t seed, uint64_t position, uint32_t stream)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), stream, 0} {}

void CounterRng::refill() {
  // Philox4x32-10. counter_[3] numbers the blocks of one generator.
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  std::array<uint32_t, 4> x = counter_;
  uint32_t key0 = key_[0], key1 = key_[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * x[0];
    const uint64_t product1 = kMultiplier1 * x[2];
    x = {static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  block_ = x;
  used_ = 0;
  if (++counter_[3] == 0) throw std::logic_error("a CounterRng has given all of its 2^34 numbers");
}

uint32_t CounterRng::next_u32() {
  if (used_ == 4) refill();
  return block_[used_++];
}

uint64_t CounterRng::next_u64() {
  const uint64_t low = next_u32();
  return low | static_cast<uint64_t>(next_u32()) << 32;
}

double CounterRng::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

uint64_t CounterRng::below(uint64_t bound) {
  if (bound == 0) throw std::logic_error("CounterRng::below needs a bound above 0");
  // Lemire, "Fast random integer generation in an interval" (2019): the high half of a product, with the few
  // low halves refused that would make some results likelier.
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next_u64()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t refused = -bound % bound;
    while (static_cast<uint64_t>(product) < refused) product = static_cast<Wide>(next_u64()) * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

}  // namespace gantry
