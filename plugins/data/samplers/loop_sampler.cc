#include "gantry/gantry.h"
#include "gantry/random.h"
#include "gantry/sampler.h"
#include "index_range.h"

namespace gantry {

namespace {

class LoopSampler final : public Sampler {
 public:
  static void declare(Parameters& p) {
    IndexRange::declare(p);
    p.optional<int64_t>("SIZE").at_least(1).at_most(1e9).unit("samples").help(
        "How many are drawn for an epoch; default: as many as there are.");
  }
  LoopSampler(const Config& config, Context&)
      : range_(config), size_(config.has("SIZE") ? config.get<int64_t>("SIZE") : 0) {}

  int64_t size(int64_t dataset_size) const override {
    const int64_t count = range_.count(dataset_size);
    return size_ > 0 && count > 0 ? size_ : count;
  }
  std::vector<int64_t> order(const SamplerPass& pass) const override {
    constexpr uint32_t kStream = 0x5A3B1E01;  // far from the small streams that transforms draw from
    CounterRng rng(pass.seed, static_cast<uint64_t>(pass.epoch), kStream);
    const auto count = static_cast<uint64_t>(range_.count(pass.dataset_size));
    std::vector<int64_t> indices(static_cast<std::size_t>(size(pass.dataset_size)));
    for (int64_t& index : indices) index = range_.first() + static_cast<int64_t>(rng.below(count));
    return indices;
  }

 private:
  const IndexRange range_;
  const int64_t size_;
};

}  // namespace

GANTRY_SAMPLER(LoopSampler, "LoopSampler", "Samples at random, each draw independent of the others.");

}  // namespace gantry
