#include "gantry/dataset.h"

#include <stdexcept>

#include "gantry/sampler.h"
#include "gantry/transform.h"

namespace gantry {

void Dataset::declare_common(Parameters& parameters) {
  parameters.add<int64_t>("BATCH_SIZE", 4).at_least(1).unit("samples").help("Samples of one batch, per process.");
  parameters.add<int64_t>("NUM_WORKERS", 1)
      .at_least(0)
      .unit("threads")
      .no_effect_on_result()
      .help("Threads that make batches ahead; 0 makes them between iterations.");
  parameters.optional<bool>("SHUFFLE").help(
      "Whether the order changes with each epoch; default: training data are shuffled, others not.");
  parameters.component_or<Sampler>("SAMPLER", "DefaultSampler").help("Decides the order of an epoch.");
  parameters.components<Transform>("TRANSFORMS").help("What is done to the samples, in this order.");
  parameters.optional<std::string>("MODE")
      .choices({"train", "eval", "test"})
      .help("Which part of the data; default: that of the section the dataset stands in.");
  parameters.foreign("PIN_MEMORY", {"false"}, "batches are copied to a GPU as they come");
  parameters.foreign("NUM_FOLDS", {"0", "1"}, "SOLVER.NUM_FOLDS says how often a pass has the data");
  parameters.foreign("FILE_SYSTEM", {}, "SOLVER.FILE_SYSTEM serves the whole configuration");
}

Dataset::~Dataset() = default;
LookupGather::~LookupGather() = default;

Sample Dataset::get(int64_t) const {
  throw std::logic_error("a dataset has to implement get or get_batch; this one implements neither");
}

Batch Dataset::get_batch(std::span<const int64_t> indices) const {
  std::vector<Sample> samples;
  samples.reserve(indices.size());
  for (const int64_t index : indices) samples.push_back(get(index));
  return collate(samples);
}

void Dataset::begin_epoch(int64_t) {}

}  // namespace gantry
