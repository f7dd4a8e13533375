#include "index_range.h"

#include "gantry/text.h"

namespace gantry {

void IndexRange::declare(Parameters& parameters) {
  parameters.add<int64_t>("FROM", 0).at_least(0).unit("samples").help("Index of the first sample that is used.");
  parameters.optional<int64_t>("UNTIL").at_least(1).unit("samples").help(
      "Index after the last sample that is used; default: the dataset's size.");
}

IndexRange::IndexRange(const Config& config) : config_(config), first_(config.get<int64_t>("FROM")) {
  if (!config.has("UNTIL") || config.get<int64_t>("UNTIL") > first_) return;
  throw config.error("UNTIL", cat("is ", config.get<int64_t>("UNTIL"), ", which should be more than FROM, ", first_));
}

int64_t IndexRange::count(int64_t dataset_size) const {
  if (dataset_size == 0) return 0;
  const int64_t end = config_.has("UNTIL") ? config_.get<int64_t>("UNTIL") : dataset_size;
  if (end > dataset_size) {
    throw config_.error("UNTIL", cat("is ", end, ", but the dataset has ", dataset_size, " samples"));
  }
  if (first_ >= end) {
    throw config_.error("FROM", cat("is ", first_, ", but the dataset has ", dataset_size, " samples, counted from 0"));
  }
  return end - first_;
}

}  // namespace gantry
