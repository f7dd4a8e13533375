#include <numeric>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/random.h"
#include "gantry/sampler.h"

namespace gantry {

namespace {

class DefaultSampler final : public Sampler {
 public:
  DefaultSampler(const Config&, Context&) {}

  std::vector<int64_t> order(const SamplerPass& pass) const override {
    std::vector<int64_t> indices(static_cast<std::size_t>(pass.dataset_size));
    std::iota(indices.begin(), indices.end(), 0);
    if (!pass.shuffle) return indices;
    constexpr uint32_t kStream = 0x5A3B1E00;  // far from the small streams that transforms draw from
    CounterRng rng(pass.seed, static_cast<uint64_t>(pass.epoch), kStream);
    for (std::size_t i = indices.size(); i > 1; --i) std::swap(indices[i - 1], indices[rng.below(i)]);
    return indices;
  }
};

}  // namespace

GANTRY_PLUGIN("gantry-default-sampler", GANTRY_VERSION);
GANTRY_SAMPLER(DefaultSampler, "DefaultSampler",
               "All samples once per epoch: in order, or shuffled anew from ENV.SEED and the epoch.");

}  // namespace gantry
