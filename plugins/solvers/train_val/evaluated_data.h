#pragma once

#include <gantry/batch.h>

#include <string>
#include <vector>

/// What an evaluation saw of each sample, by name, on the CPU until it is written.
class EvaluatedData {
 public:
  explicit EvaluatedData(std::vector<std::string> keys) : keys_(std::move(keys)), values_(keys_.size()) {}
  /// Waits for the device. Throws gantry::Error for a name that is unknown, or no tensor with a value for each sample.
  void add(const gantry::Batch& batch, const gantry::Outputs& outputs);
  void clear();
  /// A tensor for each name, samples along dimension 0, and their indices as "sample_id".
  void write(const std::string& path) const;

 private:
  const std::vector<std::string> keys_;
  std::vector<std::vector<at::Tensor>> values_;  // of each name, batch by batch
  std::vector<int64_t> ids_;
};
