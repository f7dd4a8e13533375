#pragma once

#include <gantry/checkpoint.h>
#include <gantry/state.h>

#include <string>
#include <utility>
#include <vector>

namespace stop_and_go {

/// What can be changed in a checkpoint: every leaf of its state, and groups of them under a short name.
struct Items {
  struct Group {
    std::string name, prefix;        ///< "rng", "rng/"
    std::vector<std::string> paths;  ///< never empty
  };
  std::vector<Group> groups;
  std::vector<std::string> paths;  ///< of all leaves

  explicit Items(const gantry::State& state);
  /// The leaf that an item stands for: a leaf's path, a group, or what some paths begin with. Throws gantry::Error that
  /// has near matches.
  std::string leaf(const std::string& item) const;
};

/// What became of a value.
struct Mutation {
  std::string path, type, before, after;
  bool changed() const { return !after.empty(); }  ///< an empty tensor cannot be
};

/// Writes the checkpoint again, under its name and with valid checksums, with one value of one leaf changed: whole
/// numbers and floating-point ones by 1 (doubled where that would round away), truth values negated, texts and
/// generator states in one byte. Files that other folders share are left as they are.
Mutation mutate(const gantry::CheckpointInfo& checkpoint, const std::string& path);

}  // namespace stop_and_go
