#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/resume.h"

/// `gantry stop-and-go` on the job of resume.h, three epochs of it: 10 iterations and 4 windows each, the last one
/// short; 3 evaluation batches after each.

namespace e2e {

struct StopAndGo {
  TempDir dir;
  RunResult result;
  nlohmann::json report;  ///< null when none was written

  explicit StopAndGo(const std::vector<std::string>& arguments, int expected_exit = 0, const std::string& job = kJob,
                     const RunOptions& options = {}) {
    dir.write("job.yaml", replaced(job, "MAX_EPOCHS: 6", "MAX_EPOCHS: 3"));
    dir.write("tmp/keep", "");
    std::vector<std::string> words{"--plugin-dir", GANTRY_PROBE_DIR, "stop-and-go",
                                   "job.yaml",     "--json",         "report.json"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    RunOptions isolated = options;
    isolated.env.emplace("TMPDIR", dir.path("tmp"));
    isolated.env.emplace("OMP_NUM_THREADS", "1");
    isolated.timeout_s = 280;
    result = run_gantry(words, dir.path(), isolated);
    INFO(result.describe());
    REQUIRE(result.exit_code == expected_exit);
    if (dir.has("report.json")) report = nlohmann::json::parse(dir.read("report.json"));
  }

  bool says(const std::string& text) const { return (result.out + result.err).find(text) != std::string::npos; }
  /// What is in the folder for temporary files, and was not there before.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const std::string& name : dir.list())
      if (name.starts_with("tmp/") && name != "tmp/keep" && name.find('/', 4) == name.size() - 1) names.push_back(name);
    return names;
  }
  std::vector<std::string> asked() const {
    std::vector<std::string> places;
    for (const auto& stop : report.at("stops")) places.push_back(stop.at("asked"));
    return places;
  }
  /// Of a recorder, by its name; of the others, the first of a kind.
  nlohmann::json comparison(const std::string& kind, const std::string& name = "") const {
    for (const auto& comparison : report.at("comparisons"))
      if (comparison.at("kind") == kind && (name.empty() || comparison.at("name") == name)) return comparison;
    FAIL("nothing compared: " << kind << " " << name);
    return {};
  }
  nlohmann::json change(const std::string& path) const {
    for (const auto& change : report.at("mutations"))
      if (change.at("path") == path) return change;
    FAIL("not changed: " << path);
    return {};
  }
};

/// The job with one more hook.
inline std::string job_with(const std::string& hook) {
  return replaced(kJob, "  HOOKS:\n", "  HOOKS:\n    - " + hook + "\n");
}

}  // namespace e2e
