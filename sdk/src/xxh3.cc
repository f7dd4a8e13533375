#include "xxh3.h"

#include <xxhash.h>

#include <cstdint>
#include <new>

namespace gantry {

void Xxh3::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void Xxh3::update(const void* data, std::size_t size) { XXH3_64bits_update(state_.get(), data, size); }

std::string Xxh3::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  const uint64_t hash = XXH3_64bits_digest(state_.get());
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[hash >> shift & 15];
  return text;
}

}  // namespace gantry
