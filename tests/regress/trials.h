#pragma once

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "e2e/resume.h"

/// What the tests in here share. Each is a failure that some trainer had in the field, as a trial of this one.

namespace trials {

using Changes = std::vector<std::string>;

inline Changes operator+(Changes a, const Changes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The job of resume.h with more in its HOOKS.
inline std::string job_with(const std::string& hook) {
  return e2e::replaced(e2e::kJob, "    - {NAME: test/Trace", "    - " + hook + "\n    - {NAME: test/Trace");
}

/// Batches between optimizer steps.
inline std::string windows_of(int64_t iterations) {
  return "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=" + std::to_string(iterations);
}
inline std::string traced(const std::string& points) { return "SOLVER.HOOKS[test/Trace].ONLY=[" + points + "]"; }

const std::string kCheckpoint = "SOLVER.HOOKS[CheckpointHook].";

/// Runs a job to its end with a pause at each of `stops`.
inline void run_with_stops(const e2e::Job& job, const Changes& changes, const std::vector<Changes>& stops) {
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (i == 0)
      job.run(changes + stops[i], 75);
    else
      job.resume(changes + stops[i], 75);
  }
  job.resume(changes);
}

}  // namespace trials
