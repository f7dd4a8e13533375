#include <memory>

#include "gantry/gantry.h"
#include "gantry/sampler.h"

namespace gantry {

namespace {

class MultiFoldSampler final : public Sampler {
 public:
  static void declare(Parameters& p) {
    p.add<int64_t>("NUM_FOLDS").at_least(1).at_most(1e6).help("How often an epoch goes through the data.");
    p.component_or<Sampler>("SAMPLER", "DefaultSampler").help("Decides the order of each time.");
  }
  MultiFoldSampler(const Config& config, Context& context)
      : config_(config),
        folds_(config.get<int64_t>("NUM_FOLDS")),
        sampler_(context.build<Sampler>(config.get<Config>("SAMPLER"))) {}

  int64_t size(int64_t dataset_size) const override {
    constexpr int64_t kMost = 1'000'000'000;
    const int64_t fold = sampler_->size(dataset_size);
    if (fold <= kMost / folds_) return folds_ * fold;
    throw config_.error("NUM_FOLDS",
                        cat("makes an epoch of ", folds_, " times ", fold, " samples; it may have ", kMost));
  }

  // The folds of epoch e are the epochs (e-1)*NUM_FOLDS + 1 to e*NUM_FOLDS of the inner sampler: none is like another.
  std::vector<int64_t> order(const SamplerPass& pass) const override {
    std::vector<int64_t> indices;
    indices.reserve(static_cast<std::size_t>(size(pass.dataset_size)));
    SamplerPass fold = pass;
    for (int64_t i = 1; i <= folds_; ++i) {
      fold.epoch = (pass.epoch - 1) * folds_ + i;
      const std::vector<int64_t> order = sampler_->order(fold);
      indices.insert(indices.end(), order.begin(), order.end());
    }
    return indices;
  }

 private:
  const Config config_;
  const int64_t folds_;
  const std::unique_ptr<Sampler> sampler_;
};

}  // namespace

GANTRY_SAMPLER(MultiFoldSampler, "MultiFoldSampler",
               "The data several times in one epoch, each time in another order.");

}  // namespace gantry
