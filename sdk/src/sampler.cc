#include "gantry/sampler.h"

namespace gantry {

Sampler::~Sampler() = default;

int64_t Sampler::size(int64_t dataset_size) const { return dataset_size; }

}  // namespace gantry
