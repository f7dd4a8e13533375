#include "e2e/resume.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

namespace e2e {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return in ? out.str() : "cannot read " + path;
}

}  // namespace

std::vector<std::string> Job::command(const std::vector<std::string>& changes) const {
  std::vector<std::string> arguments{"run", "job.yaml", "--json", "--plugin-dir", GANTRY_PROBE_DIR};
  arguments.insert(arguments.end(), changes.begin(), changes.end());
  return arguments;
}

RunResult Job::run(const std::vector<std::string>& changes, int expected_exit, const RunOptions& options) const {
  RunResult result = run_gantry(command(changes), dir.path(), options);
  INFO(result.describe());
  REQUIRE(result.exit_code == expected_exit);
  return result;
}

RunResult Job::resume(std::vector<std::string> changes, int expected_exit) const {
  changes.push_back("SOLVER.RESUME_FROM=auto");
  return run(changes, expected_exit);
}

std::map<int64_t, std::string> Job::losses() const {
  std::map<int64_t, std::string> losses;
  for (const std::string& line : lines("losses.txt")) {
    std::istringstream in(line);
    int64_t iteration = -1;
    std::string bits;
    in >> iteration >> bits;
    const auto [at, first] = losses.emplace(iteration, bits);
    INFO("iteration " << iteration);
    if (!first) CHECK(at->second == bits);
  }
  return losses;
}

std::vector<std::string> Job::names(const std::string& folder) const {
  std::vector<std::string> names;
  if (!dir.has(folder)) return names;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir.path(folder)))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string Job::link(const std::string& name) const {
  std::error_code none;
  return fs::read_symlink(work("checkpoints/" + name), none).string();
}

std::vector<std::string> at_point(const std::string& point, int64_t epoch, int64_t iter) {
  const std::string hook = "SOLVER.HOOKS[test/RaiseSignal].";
  return {hook + "AT_POINT=" + point, hook + "EPOCH=" + std::to_string(epoch), hook + "ITER=" + std::to_string(iter)};
}

std::string checkpoint_difference(const std::string& a, const std::string& b) {
  std::string differences;
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.safetensors"}) {
    const fs::path one = fs::path(a) / file, other = fs::path(b) / file;
    if (!fs::exists(one) || !fs::exists(other))
      differences += std::string(file) + " is missing; ";
    else if (bytes_of(one.string()) != bytes_of(other.string()))
      differences += std::string(file) + " differs; ";
  }
  return differences;
}

void check_same_training(const Job& undisturbed, const Job& other) {
  CHECK(other.losses() == undisturbed.losses());
  REQUIRE(undisturbed.link("last") != "");
  CHECK(other.link("last") == undisturbed.link("last"));
  CHECK(other.link("best") == undisturbed.link("best"));
  const std::vector<std::string> names = other.names();
  for (const std::string& name : undisturbed.names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    INFO(name);
    CHECK(checkpoint_difference(undisturbed.work("checkpoints/" + name), other.work("checkpoints/" + name)) == "");
  }
}

void check_same_counts(const Job& undisturbed, const Job& other) {
  CHECK(other.lines("counts.txt") == undisturbed.lines("counts.txt"));
  CHECK(other.lines("counts-2.txt") == undisturbed.lines("counts-2.txt"));
}

}  // namespace e2e
