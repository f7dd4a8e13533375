#pragma once

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "e2e/resume.h"

/// Runs whose file operations fail, take their time or end the process: see tests/fixtures/faults/faults.cc.

namespace e2e {

/// One file operation, in the order in which the process made them.
struct Call {
  std::string name;  ///< "open" for writing, "write", "fsync", "close", "mkdir", "rename", "remove", ...
  std::string path;  ///< absolute, as `to`
  std::string to;    ///< of a rename
  bool main_thread = true;

  bool is(std::string_view call, std::string_view part) const {
    return name == call && (path.find(part) != std::string::npos || to.find(part) != std::string::npos);
  }
};

/// One run of a job, with a rule for what goes wrong ("CALL PATH FIRST TIMES ACTION; ..."), and what it did.
struct FaultyRun {
  RunResult result;
  std::vector<Call> calls;  ///< on files of the job's folder

  FaultyRun(const Job& job, const std::string& rules, const std::vector<std::string>& changes);
  /// Its calls within the folder of checkpoints, and the number that each has in a rule "any work/checkpoints".
  std::vector<Call> checkpoint_calls() const;
};

inline FaultyRun::FaultyRun(const Job& job, const std::string& rules, const std::vector<std::string>& changes) {
  const TempDir notes;
  RunOptions options;
  options.env = {{"LD_PRELOAD", GANTRY_FAULTS_LIBRARY},
                 {"FAULTS_UNDER", job.dir.path() + "/"},
                 {"FAULTS_TRACE", notes.path("calls.txt")},
                 {"FAULTS", rules}};
  result = run_gantry(job.command(changes), job.dir.path(), options);
  REQUIRE(notes.has("calls.txt"));
  for (const std::string& line : lines_of(notes.read("calls.txt"))) {
    Call call;
    std::istringstream in(line);
    std::string thread, arrow;
    in >> thread >> call.name >> call.path >> arrow >> call.to;
    call.main_thread = thread == "main";
    calls.push_back(std::move(call));
  }
}

inline std::vector<Call> FaultyRun::checkpoint_calls() const {
  std::vector<Call> chosen;
  for (const Call& call : calls)
    if (call.is(call.name, "work/checkpoints")) chosen.push_back(call);
  return chosen;
}

}  // namespace e2e
