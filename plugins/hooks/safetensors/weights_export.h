#pragma once

#include <gantry/safetensors.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Writes weights so that they appear whole or not at all.

struct ExportedTensor {
  std::string name;
  at::Tensor tensor;
  std::vector<std::string> aliases;  ///< other names of the same tensor
};

struct Weights {
  std::vector<ExportedTensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< of each file

  int64_t bytes() const;
};

/// One file, `folder`/`name`.safetensors, or, where there are more than `shard_bytes`, the folder `folder`/`name` of
/// shards and their index; <= 0: one file always. Replaces what has that name. Returns the path; throws gantry::Error,
/// having removed what it wrote.
std::string export_weights(const Weights& weights, const std::string& folder, const std::string& name,
                           int64_t shard_bytes);

/// Removes what an interrupted export left behind.
void remove_leftovers(const std::string& folder);
