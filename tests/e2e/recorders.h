#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "e2e/resume.h"

/// Runs whose hooks write down what they do, and what those hooks left.

namespace e2e {

/// The job of resume.h, 10 training iterations an epoch and evaluations of 3, with `hooks` in its HOOKS beside
/// test/LogValues and test/Shows, without windows.
inline std::string recorded_job(const std::string& hooks) {
  return replaced(replaced(replaced(kJob, "    - {NAME: test/RaiseSignal",
                                    "    - {NAME: test/LogValues}\n    - {NAME: test/Shows}\n" + hooks +
                                        "    - {NAME: test/RaiseSignal"),
                           "ACCUMULATE_STEP: 3", "ACCUMULATE_STEP: 1"),
                  "MAX_EPOCHS: 6", "MAX_EPOCHS: 3");
}

inline bool have_python() {
  static const bool have = std::filesystem::exists(GANTRY_SOURCE_DIR "/.venv/bin/python");
  if (!have) MESSAGE("skipped: there is no " GANTRY_SOURCE_DIR "/.venv/bin/python");
  return have;
}

/// event_files.py, in the job's folder.
inline RunResult event_files(const Job& job, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {GANTRY_SOURCE_DIR "/.venv/bin/python", GANTRY_SOURCE_DIR "/tests/e2e/event_files.py"});
  return run_program(arguments, job.dir.path());
}

/// All that TensorBoard finds in a folder.
inline std::vector<std::string> shown(const Job& job, const std::string& folder = "work/tensorboard") {
  const RunResult result = event_files(job, {"dump", folder});
  INFO(result.describe());
  REQUIRE(result.exit_code == 0);
  return lines_of(result.out);
}

inline void append(const Job& job, const std::string& file, std::string_view bytes) {
  std::ofstream(job.dir.path(file), std::ios::binary | std::ios::app) << bytes;
}

/// Without a checkpoint: SIGKILL after the hooks of an iteration have run.
inline void run_until_killed(const Job& job, int64_t iteration, std::vector<std::string> changes = {}) {
  changes.insert(changes.end(), {"SOLVER.HOOKS[test/RaiseSignal].SIGNAL=KILL", at_iteration(iteration)});
  const RunResult result = run_gantry(job.command(changes), job.dir.path());
  INFO(result.describe());
  REQUIRE(result.signal == 9);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline int64_t count_starting(const std::vector<std::string>& lines, const std::string& beginning) {
  int64_t n = 0;
  for (const std::string& line : lines) n += line.starts_with(beginning);
  return n;
}

}  // namespace e2e
