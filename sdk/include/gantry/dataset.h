#pragma once

#include <span>
#include <string>

#include "gantry/batch.h"
#include "gantry/export.h"
#include "gantry/parameters.h"

namespace gantry {

/// Samples by index. Implement `get`, or `get_batch` where gathering many at once is cheaper.
///
/// Thread: `get` and `get_batch` are called from loader threads, several at a time, on a const object:
/// no mutable state without a lock. `begin_epoch` is called on the main thread while no loader thread runs.
/// Return CPU tensors that nothing writes to afterwards.
class GANTRY_API Dataset {
 public:
  /// The loader's keys: BATCH_SIZE, NUM_WORKERS, SHUFFLE, SAMPLER, TRANSFORMS, MODE.
  static void declare_common(Parameters& parameters);

  virtual ~Dataset();
  virtual int64_t size() const = 0;
  virtual Sample get(int64_t index) const;
  /// Default: `get` of each index, collated. ids, weight and position are filled in by the loader.
  virtual Batch get_batch(std::span<const int64_t> indices) const;
  /// For datasets that draw anew each epoch (1-based). Must be a pure function of the epoch.
  virtual void begin_epoch(int64_t epoch);
};

/// Capability of a dataset that holds bytes: it applies pointwise transforms itself, by table, while it
/// gathers a batch. Called before training, main thread.
class GANTRY_API LookupGather {
 public:
  virtual ~LookupGather();
  /// `table` is [C, 256] of the resulting values: get_batch then gives table[c][byte] in the table's dtype.
  /// Returns false, changing nothing, where the key is no byte tensor with C channels.
  virtual bool set_lookup(const std::string& key, const at::Tensor& table) = 0;
  /// The number of channels of a byte tensor, 0 for any other key.
  virtual int64_t lookup_channels(const std::string& key) const = 0;
};

}  // namespace gantry
