#include <ATen/ops/empty.h>

#include <utility>

#include "gantry/dataset.h"
#include "gantry/gantry.h"
#include "gantry/random.h"

namespace gantry {

namespace {

// Sums of bytes, not a library's logarithms and cosines: the same bits on every machine.
class Noise {
 public:
  Noise(uint64_t seed, uint64_t position, uint32_t stream) : rng_(seed, position, stream) {}
  uint64_t below(uint64_t bound) { return rng_.below(bound); }
  /// Close to normal, mean 0, variance 1.
  float next() {
    const uint32_t word = rng_.next_u32();
    const uint32_t sum = (word & 0xFF) + (word >> 8 & 0xFF) + (word >> 16 & 0xFF) + (word >> 24);
    return (static_cast<float>(sum) - 510.0f) * (1.0f / 147.80054f);  // 510 and sqrt(4 * (256^2 - 1) / 12)
  }

 private:
  CounterRng rng_;
};

class Synthetic final : public Dataset {
 public:
  static void declare(Parameters& p) {
    p.add<int64_t>("SIZE", 1024).at_least(1).unit("samples").help("How many samples there are.");
    p.add<std::vector<int64_t>>("SHAPE", {1, 28, 28}).at_least(1).not_empty().help("Shape of one image.");
    p.add<int64_t>("NUM_CLASSES", 10).at_least(1).help("How many classes there are.");
    p.add<double>("SEPARATION", 1.0)
        .at_least(0)
        .help("Size of the pattern that a class adds to its images, where the noise has size 1; 0: nothing to learn.");
  }

  Synthetic(const Config& config, Context& context)
      : seed_(context.seed()),
        size_(config.get<int64_t>("SIZE")),
        classes_(config.get<int64_t>("NUM_CLASSES")),
        shape_(config.get<std::vector<int64_t>>("SHAPE")) {
    const std::string mode = config.has("MODE") ? config.get<std::string>("MODE") : "train";
    stream_ = mode == "train" ? kTrainStream : mode == "eval" ? kEvalStream : kTestStream;
    for (const int64_t extent : shape_) {
      if (numel_ > (int64_t{1} << 31) / extent)
        throw config.error("SHAPE", "is too large: an image may have 2^31 elements at most");
      numel_ *= extent;
    }
    if (numel_ > (int64_t{1} << 31) / classes_) {
      throw config.error("NUM_CLASSES", cat("is too large: the patterns of ", classes_, " classes, ", numel_,
                                            " elements each, may have 2^31 in all"));
    }
    const auto separation = static_cast<float>(config.get<double>("SEPARATION"));
    patterns_.reserve(static_cast<std::size_t>(classes_ * numel_));
    for (int64_t c = 0; c < classes_; ++c) {
      Noise pattern(seed_, static_cast<uint64_t>(c), kPatternStream);
      for (int64_t i = 0; i < numel_; ++i) patterns_.push_back(separation * pattern.next());
    }
  }

  int64_t size() const override { return size_; }

  Batch get_batch(std::span<const int64_t> indices) const override {
    std::vector<int64_t> shape = {static_cast<int64_t>(indices.size())};
    shape.insert(shape.end(), shape_.begin(), shape_.end());
    at::Tensor img = at::empty(shape, at::kFloat);
    at::Tensor label = at::empty({shape[0]}, at::kLong);
    auto* pixel = img.mutable_data_ptr<float>();
    auto* out = label.mutable_data_ptr<int64_t>();
    for (const int64_t index : indices) {
      Noise noise(seed_, static_cast<uint64_t>(index), stream_);
      const auto c = static_cast<int64_t>(noise.below(static_cast<uint64_t>(classes_)));
      const float* pattern = patterns_.data() + c * numel_;
      for (int64_t i = 0; i < numel_; ++i) *pixel++ = pattern[i] + noise.next();
      *out++ = c;
    }
    Batch batch;
    batch.set("img", std::move(img));
    batch.set("label", std::move(label));
    return batch;
  }

 private:
  // Far from the small streams that transforms draw from with the same seed.
  static constexpr uint32_t kTrainStream = 0xDA7A0000, kEvalStream = 0xDA7A0001, kTestStream = 0xDA7A0002,
                            kPatternStream = 0xDA7A0003;

  uint64_t seed_;
  uint32_t stream_;
  int64_t size_, classes_, numel_ = 1;
  std::vector<int64_t> shape_;
  std::vector<float> patterns_;  // [classes, numel]
};

}  // namespace

GANTRY_PLUGIN("gantry-synthetic", GANTRY_VERSION);
GANTRY_DATASET(Synthetic, "Synthetic",
               "Images of noise with a pattern for each class, computed from ENV.SEED and the index; no files.");

}  // namespace gantry
