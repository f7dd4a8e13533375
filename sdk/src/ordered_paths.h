#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gantry/state.h"

/// Names whose order counts, in a state whose files are sorted by name: "000017/loss".
namespace gantry {

inline std::string order_prefix(std::size_t index) {
  const std::string number = std::to_string(index);
  return std::string(number.size() < 6 ? 6 - number.size() : 0, '0') + number + "/";
}

inline std::string without_order_prefix(const std::string& path) { return path.substr(path.find('/') + 1); }

inline std::vector<std::string> ordered_paths(const State& state) {
  std::vector<std::string> paths;
  for (const State::Leaf& leaf : state.leaves()) paths.push_back(leaf.path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace gantry
