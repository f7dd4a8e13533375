#pragma once

#include <gantry/recording.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "numbers.h"

namespace stop_and_go {

/// One value that is not what it should be.
struct Difference {
  /// Where it was recorded; event -1: it is of no entry of the training.
  int64_t event = -1, epoch = 0, iteration = 0, batch = 0;
  std::string mode;
  std::string field;             ///< "optimizer/fc.weight/exp_avg"
  std::string expected, actual;  ///< "2.31", "digest 3f..."; "nothing"
  std::optional<NumberDifference> numbers;

  std::string place() const;  ///< "event 17: train, epoch 2, iteration 17, batch 6"; empty for no entry
};

/// Two things that should be the same, and whether they are.
struct Comparison {
  enum class Kind { recorder, restored, stop_resume, checkpoint };
  Kind kind = Kind::recorder;
  std::string name;  ///< "WeightsCallback", "segment 2", "ldm_step-20"
  int64_t entries = 0, values = 0;
  int64_t within_tolerance = 0;  ///< values that are not the same in every bit, and may differ so
  /// Of a recorder, those of the first entry that differs; of others, all.
  std::vector<Difference> differences;
  std::string note;  ///< what was not compared, and why

  bool equal() const { return differences.empty(); }
};

/// Entry by entry.
Comparison compare_recordings(const gantry::Recording& expected, const gantry::Recording& actual);

/// The values of one entry each, by their fields.
void compare_values(const gantry::Recording& expected, const gantry::Recording::Entry& expected_entry,
                    const gantry::Recording& actual, const gantry::Recording::Entry& actual_entry,
                    Comparison& comparison);

}  // namespace stop_and_go
