#pragma once

#include <gantry/probe.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "value_counts.h"

namespace probe_data {

/// Where in a run something was shown.
struct Step {
  std::string mode;
  int64_t epoch = 0;
  int64_t iteration = 0;
};

/// A probe with what was written of it.
struct Item {
  const gantry::Probe* probe = nullptr;
  std::string file;                     ///< the picture (of several, all of them side by side) or the .npy; "": none
  std::vector<std::string> files;       ///< of several pictures, each by itself
  const ValueCounts* counts = nullptr;  ///< of a distribution, over the run so far
};
using Counts = std::map<std::string, ValueCounts>;

/// Writes the pictures and tensors of `probes` into a folder, under names made from theirs, which begin with `prefix`.
/// The items point into `probes` and `counts`. Throws gantry::Error that names the probe or the file.
std::vector<Item> write_files(const std::string& folder, const std::vector<gantry::Probe>& probes, const Counts& counts,
                              const std::string& prefix);

void write_file(const std::string& path, std::string_view bytes);

/// Everything that was shown, for programs: names, kinds, shapes, values, labels, files.
std::string meta_json(const Step& step, const std::vector<Item>& items);

/// What a tensor's values are like.
struct TensorSummary {
  double smallest = 0, mean = 0, largest = 0;  ///< of the finite values
  int64_t finite = 0, not_finite = 0;
  std::vector<ValueCounts::Bar> histogram;
};
TensorSummary summary_of(const at::Tensor& tensor);

}  // namespace probe_data
