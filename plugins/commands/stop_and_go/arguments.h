#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "place.h"

namespace stop_and_go {

/// What was typed after `gantry stop-and-go`.
struct Arguments {
  enum class Stops { at_places, every, random };

  std::string config;
  std::vector<std::string> overrides;  ///< KEY=VALUE
  Stops stops = Stops::random;
  std::vector<Place> places;  ///< of --stop-at
  int64_t every = 0;
  int64_t random = 3;
  uint64_t seed = 1;
  std::string signal = "TERM";  ///< KILL with --kill
  bool whole = false;
  std::string mutate;    ///< empty: nothing is mutated
  std::string work_dir;  ///< empty: a temporary one
  std::string json;      ///< the report's path; empty: none

  bool kill() const { return signal == "KILL"; }
};

/// Throws gantry::Error that says what is wrong and where to find help.
Arguments parse_arguments(const std::vector<std::string>& words);

std::string usage_text();

}  // namespace stop_and_go
