#include <cstdint>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/transform.h"

namespace gantry {

namespace {

/// The transforms of TRANSFORMS one after the other. Pointwise where all of them are, for the same key.
class Compose final : public Transform, public PointwiseTransform {
 public:
  static void declare(Parameters& p) {
    p.components<Transform>("TRANSFORMS").help("What is done to the samples, in this order.");
  }

  Compose(const Config& config, Context& context) {
    for (const Config& transform : config.get<std::vector<Config>>("TRANSFORMS")) {
      transforms_.push_back(context.build<Transform>(transform));
    }
  }

  std::string pointwise_key() const override {
    std::string common;
    for (const auto& transform : transforms_) {
      const auto* pointwise = dynamic_cast<const PointwiseTransform*>(transform.get());
      const std::string key = pointwise == nullptr ? std::string() : pointwise->pointwise_key();
      if (key.empty() || (!common.empty() && key != common)) return {};
      common = key;
    }
    return common;
  }

  void apply(Sample& sample, CounterRng& rng) const override {
    const uint64_t seed = rng.next_u64();
    for (std::size_t i = 0; i < transforms_.size(); ++i) {
      CounterRng own(seed, 0, static_cast<uint32_t>(i));
      transforms_[i]->apply(sample, own);
    }
  }

  // Transforms of the outer list have the streams 0, 1, ... under the run's seed. Those in here have a seed of their
  // own, derived from their Compose's place, so that no two transforms share random numbers, however deep they stand.
  void apply_batch(Batch& batch, uint64_t seed, uint32_t stream) const override {
    constexpr uint32_t kSeeds = 0xC0390001;
    const uint64_t own = CounterRng(seed, stream, kSeeds).next_u64();
    for (std::size_t i = 0; i < transforms_.size(); ++i) {
      transforms_[i]->apply_batch(batch, own, static_cast<uint32_t>(i));
    }
  }

 private:
  std::vector<std::unique_ptr<Transform>> transforms_;
};

}  // namespace

GANTRY_PLUGIN("gantry-compose", GANTRY_VERSION);
GANTRY_TRANSFORM(Compose, "Compose", "Several transforms, one after the other.");

}  // namespace gantry
