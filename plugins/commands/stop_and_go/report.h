#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comparison.h"
#include "mutation.h"
#include "runs.h"

namespace stop_and_go {

/// What came out of it all.
struct Report {
  std::string config;
  std::string work_dir;  ///< where everything lies; empty: removed
  int64_t iterations = 0, steps = 0;
  std::vector<Run> runs;  ///< the continuous one first
  std::vector<Comparison> comparisons;
  std::vector<std::string> problems;   ///< why it is not shown that the runs are equal, although nothing differs
  std::optional<bool> repeats_itself;  ///< whether the job does so without being stopped
  struct Change {
    Mutation mutation;
    bool noticed = false, named = false;
    std::string how;  ///< who noticed
  };
  std::vector<Change> changes;
  std::string error;  ///< what ended the command early
  int exit_code = 0;

  bool equal() const;
  int64_t entries() const;
  int64_t values() const;
  int64_t checkpoints() const;  ///< compared
  int64_t stops() const;
  std::string json() const;
};

/// The comparison with the earliest difference; nullptr: there is none.
const Comparison* first_difference(const std::vector<Comparison>& comparisons);

std::string count_text(int64_t number, const std::string& noun);

// What is printed, whole lines.
std::string run_text(const Run& run, const std::string& done);
std::string comparisons_text(const std::vector<Comparison>& comparisons);
/// `actual`: what the second of the two is called, where it is not the interrupted run.
std::string difference_text(const Comparison& comparison, const std::string& actual = "");
std::string verdict_text(const Report& report);
std::string change_text(const Report::Change& change);

}  // namespace stop_and_go
