#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "gantry/error.h"

namespace gantry {

/// By place, each said once: what an alias names stands in several places of the tree but in one of the file.
inline void sort_problems(std::vector<ConfigError>& problems) {
  const auto place = [](const ConfigError& error) {
    return std::tie(error.where().file, error.where().line, error.where().column);
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const ConfigError& a, const ConfigError& b) { return place(a) < place(b); });
  const auto same = [&](const ConfigError& a, const ConfigError& b) {
    return place(a) == place(b) && a.message() == b.message();
  };
  problems.erase(std::unique(problems.begin(), problems.end(), same), problems.end());
}

}  // namespace gantry
