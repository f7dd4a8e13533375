#pragma once

#include <cstdint>
#include <vector>

#include "gantry/fields.h"

namespace gantry {

/// What a dataset gives for one index. Tensors have no batch dimension.
using Sample = Fields;

/// A batch: named values whose tensors have the samples along dimension 0, with what identifies them.
///
/// Lifetime: a batch that a hook or a model receives is valid until the iteration's last after_iter
/// returns. Its tensors may be kept longer (they are never written again), the Batch object may not.
class GANTRY_API Batch : public Fields {
 public:
  Batch();
  Batch(const Batch&);
  Batch(Batch&&) noexcept;
  Batch& operator=(const Batch&);
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  /// Dataset indices of the samples, in order.
  std::vector<int64_t> ids;
  /// Position of the first sample, counted over the whole run and all processes: with the seed, all that
  /// random transforms depend on.
  int64_t first_position = 0;
  /// How much this batch counts in means over batches: its number of samples, unless the loader or the
  /// model says otherwise.
  double weight = 0;

  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};

/// Stacks samples: tensors along a new dimension 0, numbers into a tensor, strings into a list. All samples
/// must have the same names and dtypes; gantry::Error names the first that differs. Tensors whose shapes differ become
/// a list, one for each sample, until a transform has made them alike (Resize). A list of one in each sample stays a
/// list.
GANTRY_API Batch collate(const std::vector<Sample>& samples);

}  // namespace gantry
