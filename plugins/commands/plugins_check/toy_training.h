#pragma once

#include <string>
#include <utility>
#include <vector>

#include "component_facts.h"

namespace plugins_check {

/// A component of the file that is being checked.
struct Candidate {
  std::string file;  ///< absolute
  std::string kind, name;
  std::vector<std::pair<std::string, std::string>> given;  ///< KEY and VALUE, of the command line
};

/// A training small enough to be run many times, with one component in the place where its kind belongs.
struct ToyTraining {
  std::string yaml;
  std::vector<std::string> overrides;       ///< what was given on the command line
  std::vector<std::string> stops;           ///< for `gantry stop-and-go`
  std::vector<std::string> missing;         ///< required keys that nobody has given
  std::vector<std::string> state_prefixes;  ///< where the component's state stands in a checkpoint, if it has any
};

ToyTraining make_toy_training(const Candidate& candidate, const ComponentFacts& facts);

}  // namespace plugins_check
