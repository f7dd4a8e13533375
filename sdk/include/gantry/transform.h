#pragma once

#include <string>

#include "gantry/batch.h"
#include "gantry/export.h"
#include "gantry/parameters.h"
#include "gantry/random.h"

namespace gantry {

/// Changes samples between the dataset and the model. Called from loader threads, several at a time: const,
/// no shared state, random numbers from `rng` alone (keyed by the run's seed, the sample's position in the
/// run and the transform's place in the list, so the same whatever thread does the work).
///
/// Implement `apply`; override `apply_batch` where a whole batch is cheaper. For images there is ImageTransform
/// (image_transform.h), which does both from one function.
class GANTRY_API Transform {
 public:
  virtual ~Transform();
  virtual void apply(Sample& sample, CounterRng& rng) const;
  /// Default: unstacks the batch, applies `apply` to each sample with its own generator, stacks again. Of a list of
  /// tensors each sample has its own; where `apply` leaves them alone, they stay a list. `seed` and `stream` make the
  /// generators: CounterRng(seed, batch.first_position + i, stream).
  virtual void apply_batch(Batch& batch, uint64_t seed, uint32_t stream) const;
};

/// Capability of a transform whose result for an element depends on that element and its channel alone.
/// A dataset that holds bytes can then look the results up while it gathers a batch.
class GANTRY_API PointwiseTransform {
 public:
  virtual ~PointwiseTransform();
  /// The tensor that it changes, [N, C, ...]. Empty: this one, as it is configured, is none.
  virtual std::string pointwise_key() const = 0;
};

}  // namespace gantry
