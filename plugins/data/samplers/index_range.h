#pragma once

#include <cstdint>

#include "gantry/config.h"
#include "gantry/parameters.h"

namespace gantry {

/// The part of a dataset that a sampler draws from: FROM and UNTIL.
class IndexRange {
 public:
  static void declare(Parameters& parameters);
  explicit IndexRange(const Config& config);

  int64_t first() const { return first_; }
  /// Of a dataset of this size, which must reach as far as UNTIL; 0 of an empty one.
  int64_t count(int64_t dataset_size) const;

 private:
  Config config_;
  int64_t first_;
};

}  // namespace gantry
