#include <numeric>

#include "gantry/gantry.h"
#include "gantry/sampler.h"
#include "index_range.h"

namespace gantry {

namespace {

class SequentialSampler final : public Sampler {
 public:
  static void declare(Parameters& p) { IndexRange::declare(p); }
  SequentialSampler(const Config& config, Context&) : range_(config) {}

  int64_t size(int64_t dataset_size) const override { return range_.count(dataset_size); }
  std::vector<int64_t> order(const SamplerPass& pass) const override {
    std::vector<int64_t> indices(static_cast<std::size_t>(size(pass.dataset_size)));
    std::iota(indices.begin(), indices.end(), range_.first());
    return indices;
  }

 private:
  const IndexRange range_;
};

}  // namespace

GANTRY_PLUGIN("gantry-samplers", GANTRY_VERSION);
GANTRY_SAMPLER(SequentialSampler, "SequentialSampler", "All samples once per epoch, in order, also in training.");

}  // namespace gantry
