#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gantry/config.h"
#include "gantry/log.h"

namespace gantry {

/// WORK_DIR as one run has it: locked, and in the state that a start or a resume needs. In its folder .gantry are the
/// lock and the names of what was there before the first run, which is not Gantry's to move.
class WorkDir final {
 public:
  /// Creates the folder if need be and locks it. Throws ConfigError at SOLVER.WORK_DIR when it cannot be created, or
  /// when another run has it, which it names.
  WorkDir(std::string path, const Config& solver, const Logger& logger);
  ~WorkDir();
  WorkDir(const WorkDir&) = delete;
  WorkDir& operator=(const WorkDir&) = delete;

  const std::string& path() const { return path_; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }

  /// Before a start from iteration 0: moves what earlier runs left into old-<n>, but nothing that `resolved` names.
  void retire_results(const Config& resolved);
  /// Before going on from a checkpoint: moves these checkpoints, which are newer, into old-<n>/checkpoints.
  void retire_checkpoints(const std::vector<std::string>& names, const std::string& goes_on_from);

 private:
  void lock(const Config& solver);
  void note_what_is_not_ours();
  std::vector<std::string> entries() const;
  std::string new_old() const;

  std::string path_;
  Logger logger_;
  int lock_ = -1;
  std::vector<std::string> not_ours_;
};

}  // namespace gantry
