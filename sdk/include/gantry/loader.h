#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "gantry/batch.h"
#include "gantry/config.h"
#include "gantry/context.h"
#include "gantry/dataset.h"
#include "gantry/error.h"
#include "gantry/export.h"
#include "gantry/sampler.h"
#include "gantry/transform.h"

namespace gantry {

/// Batches of a dataset, in the sampler's order, made ahead by worker threads. What it yields depends on
/// (seed, epoch, batch) alone, never on the number of threads or their timing.
///
/// Main thread. `next`, `stop` and the destructor wait only for the batches that workers have in hand.
class GANTRY_API Loader final {
 public:
  struct Options {
    int64_t batch_size = 1;
    int64_t num_workers = 0;    ///< 0: batches are made in `next`
    int64_t limit_batches = 0;  ///< of an epoch; <= 0: all
    int64_t folds = 1;          ///< an epoch is the sampler's order this many times, drawn anew for each
    bool shuffle = false;
    uint64_t seed = 0;
  };
  struct Parts {
    std::unique_ptr<Dataset> dataset;
    std::unique_ptr<Sampler> sampler;
    std::vector<std::unique_ptr<Transform>> transforms;
    /// Who to name when one of them throws: component, plugin, place in the configuration.
    ComponentError::Origin dataset_origin, sampler_origin;
    std::vector<ComponentError::Origin> transform_origins;  ///< one per transform, or none
  };

  /// Pointwise transforms at the head of the list are folded into a dataset that can look them up.
  Loader(Parts parts, const Options& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t samples_per_epoch() const;
  int64_t batches_per_epoch() const;  ///< after the limit; the last batch may be short
  int64_t batch_size() const;
  Dataset& dataset();
  Sampler& sampler();

  /// Starts an epoch (1-based) at this batch (0-based). Stops a running one. The order, and a dataset's subset, are
  /// those of the epoch `drawn`, by default the same; random transforms go by `epoch`.
  void begin(int64_t epoch, int64_t first_batch = 0, int64_t drawn = 0);
  /// The next batch; false after the last one. Rethrows what the dataset or a transform threw, as a
  /// ComponentError with the sample ids of the batch.
  bool next(Batch& batch);
  /// Waits until `next` would return without waiting, or for this long; returns whether it would. At once where there
  /// are no worker threads: `next` then does the work itself.
  bool wait(std::chrono::milliseconds at_most);
  /// Ends the epoch early; nothing runs afterwards until `begin`.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Builds a dataset with its sampler, transforms and loader from a *_DATA component. `training` decides
/// SHUFFLE where the configuration leaves it open.
GANTRY_API std::unique_ptr<Loader> make_loader(const Config& data, Context& context, bool training,
                                               int64_t limit_batches, int64_t folds = 1);

}  // namespace gantry
