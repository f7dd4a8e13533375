#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/parameters.h"
#include "gantry/transform.h"

namespace gantry {

/// What transforms of images have in common: the keys that say which tensors they change, and the walk over a batch in
/// which each sample has random numbers of its own. A derived class implements `transform` alone; what it does to a
/// sample is then what it does to a batch. Threads: as Transform.
///
/// Images of one size come as one tensor; a batch whose images have several sizes holds a list, which is changed image
/// by image and becomes a tensor as soon as they are alike.
class GANTRY_API ImageTransform : public Transform {
 public:
  /// INPUT_KEY, OUTPUT_KEY, and SCEPTER's BACKEND. A derived class calls this first in its own declare.
  static void declare(Parameters& parameters);

  explicit ImageTransform(const Config& config);
  ~ImageTransform() override;

  void apply(Sample& sample, CounterRng& rng) const final;
  void apply_batch(Batch& batch, uint64_t seed, uint32_t stream) const final;

 protected:
  /// `images` are [N, ...], in pictures [N, C, H, W], all of one size; `random` has N generators. `key` is what the
  /// batch calls them, for messages. The result is [N, ...]; `images` are not written to.
  ///
  /// Where INPUT_KEY names several images of a sample, each sees the same random numbers: a picture and its mask are
  /// cut at the same place.
  virtual at::Tensor transform(const std::string& key, const at::Tensor& images,
                               std::span<CounterRng> random) const = 0;

  const Config& config() const { return config_; }
  /// Throws ConfigError where there are fewer than three dimensions or no pixels.
  void require_pictures(const std::string& key, const at::Tensor& images) const;
  /// What PointwiseTransform::pointwise_key may return: the one key that is changed in place, else empty.
  std::string in_place_key() const;

 private:
  at::Tensor transform_one(const std::string& key, const at::Tensor& image, CounterRng& rng) const;

  Config config_;
  std::vector<std::string> input_keys_, output_keys_;
};

}  // namespace gantry
