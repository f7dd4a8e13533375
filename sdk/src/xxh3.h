#pragma once

#include <cstddef>
#include <memory>
#include <string>

struct XXH3_state_s;

namespace gantry {

/// XXH3 with 64 bits over bytes that come piece by piece.
class Xxh3 final {
 public:
  Xxh3();
  void update(const void* data, std::size_t size);
  /// 16 hexadecimal digits for all bytes so far, as xxhsum prints them.
  std::string hex() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace gantry
