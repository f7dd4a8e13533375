#pragma once

#include <cstdint>
#include <vector>

#include "gantry/export.h"
#include "gantry/parameters.h"

namespace gantry {

struct SamplerPass {
  int64_t dataset_size = 0;
  uint64_t seed = 0;
  int64_t epoch = 1;  ///< 1-based
  bool shuffle = false;
};

/// The order of one epoch, as a pure function of the pass: nothing to save, and a resumed run finds its
/// place by counting. Over all processes; the loader takes this process's share. Main thread.
class GANTRY_API Sampler {
 public:
  virtual ~Sampler();
  /// How many indices an epoch has. The same for every epoch.
  virtual int64_t size(int64_t dataset_size) const;
  /// That many dataset indices, in [0, dataset_size), repeats allowed.
  virtual std::vector<int64_t> order(const SamplerPass& pass) const = 0;
};

}  // namespace gantry
