#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/random.h"
#include "gantry/sampler.h"

namespace gantry {

namespace {

// Far from the small streams that transforms draw from.
constexpr uint32_t kMixStream = 0x5A3B1E02, kSeedStream = 0x5A3B1E03;

class MixtureOfSamplers final : public Sampler {
 public:
  static void declare(Parameters& p) {
    p.components<Sampler>("SUB_SAMPLERS").not_empty().help("Where the indices come from.");
    p.optional<std::vector<double>>("PROBS").at_least(0).help(
        "The share of each of SUB_SAMPLERS, as a weight: [3, 1] takes three quarters from the first; default: equal.");
    p.optional<int64_t>("SIZE").at_least(1).at_most(1e9).unit("samples").help(
        "How many indices an epoch has; default: as many as the epochs of all SUB_SAMPLERS together.");
    p.foreign("KEEP_ORDER", {"true", "false"}, "leave it out: there is one order, of which every process takes a part");
  }

  MixtureOfSamplers(const Config& config, Context& context)
      : config_(config), size_(config.has("SIZE") ? config.get<int64_t>("SIZE") : 0) {
    for (const Config& sampler : config.get<std::vector<Config>>("SUB_SAMPLERS")) {
      samplers_.push_back(context.build<Sampler>(sampler));
    }
    weights_.assign(samplers_.size(), 1.0);
    if (config.has("PROBS")) weights_ = config.get<std::vector<double>>("PROBS");
    if (weights_.size() != samplers_.size()) {
      throw config.error("PROBS", cat("has ", weights_.size(), weights_.size() == 1 ? " number" : " numbers",
                                      ", SUB_SAMPLERS has ", samplers_.size(), "; each needs one"));
    }
    const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    if (!(sum > 0) || !std::isfinite(sum)) throw config.error("PROBS", "needs a finite number above 0 at least");
    for (double& weight : weights_) weight /= sum;
  }

  int64_t size(int64_t dataset_size) const override {
    int64_t all = 0;
    for (const auto& sampler : samplers_) all += sampler->size(dataset_size);
    if (all == 0) return 0;
    const int64_t size = size_ > 0 ? size_ : all;
    shares_of(size);  // throws where one is none
    return size;
  }

  std::vector<int64_t> order(const SamplerPass& pass) const override {
    const std::vector<int64_t> shares = shares_of(size(pass.dataset_size));
    std::vector<std::vector<int64_t>> parts;
    std::vector<std::size_t> turns;
    for (std::size_t s = 0; s < samplers_.size(); ++s) {
      parts.push_back(part(s, shares[s], pass));
      turns.insert(turns.end(), static_cast<std::size_t>(shares[s]), s);
    }
    CounterRng rng(pass.seed, static_cast<uint64_t>(pass.epoch), kMixStream);
    for (std::size_t i = turns.size(); i > 1; --i) std::swap(turns[i - 1], turns[rng.below(i)]);

    std::vector<std::size_t> taken(samplers_.size(), 0);
    std::vector<int64_t> indices;
    indices.reserve(turns.size());
    for (const std::size_t s : turns) indices.push_back(parts[s][taken[s]++]);
    return indices;
  }

 private:
  // How much of an epoch comes from each: the same in every epoch, rounded so that it adds up.
  std::vector<int64_t> shares_of(int64_t size) const {
    std::vector<int64_t> shares;
    std::vector<std::pair<double, std::size_t>> left;
    int64_t sum = 0;
    for (std::size_t s = 0; s < samplers_.size(); ++s) {
      const double exact = static_cast<double>(size) * weights_[s];
      shares.push_back(static_cast<int64_t>(exact));
      sum += shares.back();
      // Ascending: the largest remainder first.
      if (weights_[s] > 0) left.emplace_back(static_cast<double>(shares.back()) - exact, s);
    }
    std::sort(left.begin(), left.end());
    for (std::size_t i = 0; sum < size; ++i, ++sum) ++shares[left[i % left.size()].second];
    for (std::size_t s = 0; s < samplers_.size(); ++s) {
      if (shares[s] > 0 || weights_[s] == 0) continue;
      throw config_.error("PROBS", cat("gives SUB_SAMPLERS[", s, "] a share of ", number_text(weights_[s]),
                                       ", which is not one sample of an epoch of ", size, ": raise SIZE"));
    }
    return shares;
  }

  // What `count` a sampler gives in this epoch. It goes on where it was at the end of the epoch before, through its own
  // epochs, so that all of its samples have their turn.
  std::vector<int64_t> part(std::size_t s, int64_t count, const SamplerPass& pass) const {
    std::vector<int64_t> indices;
    if (count == 0) return indices;
    const int64_t own_size = samplers_[s]->size(pass.dataset_size);
    if (own_size == 0) throw config_.error("SUB_SAMPLERS", cat("has a sampler without samples: number ", s));
    SamplerPass own = pass;
    own.seed = CounterRng(pass.seed, s, kSeedStream).next_u64();  // two samplers of one kind are to differ
    const int64_t before = (pass.epoch - 1) * count;
    own.epoch = before / own_size + 1;
    int64_t begin = before % own_size;
    indices.reserve(static_cast<std::size_t>(count));
    while (static_cast<int64_t>(indices.size()) < count) {
      const std::vector<int64_t> order = samplers_[s]->order(own);
      const int64_t end = std::min(own_size, begin + count - static_cast<int64_t>(indices.size()));
      indices.insert(indices.end(), order.begin() + begin, order.begin() + end);
      begin = 0;
      ++own.epoch;
    }
    return indices;
  }

  const Config config_;
  const int64_t size_;
  std::vector<std::unique_ptr<Sampler>> samplers_;
  std::vector<double> weights_;  // their sum is 1
};

}  // namespace

GANTRY_SAMPLER(MixtureOfSamplers, "MixtureOfSamplers", "Indices of several samplers, mixed by shares.");

}  // namespace gantry
