#pragma once

#include <gantry/checkpoint.h>
#include <gantry/command.h>

#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "place.h"
#include "plan.h"

namespace stop_and_go {

/// The user's configuration, and how the processes that run it are started.
class Job final {
 public:
  struct Hook {
    std::string label, name;  ///< "TrainLossCallback#2", "TrainLossCallback"
    std::string mode;         ///< of one that has MODE STOP or RESUME; else empty
  };
  /// One process.
  struct Process {
    std::string work_dir, config;  ///< the path of the configuration to write
    std::optional<Place> stop;
    bool resumes = false;  ///< from the newest checkpoint in work_dir; else as the configuration has it
  };

  /// Throws gantry::Error: the configuration has problems, trains nothing, or cannot be stopped as asked.
  Job(const Arguments& arguments, gantry::CommandContext& context);

  /// Writes the configuration of a process and returns the command that runs it.
  std::vector<std::string> command(const Process& process) const;
  /// In the order in which the solver counts them.
  const std::vector<Hook>& hooks() const { return hooks_; }
  /// Labels of hooks that are added to the configuration's own.
  const std::vector<std::string>& added() const { return added_; }
  /// What was done before the run begins, where the configuration itself goes on from a checkpoint.
  const Before& before() const { return before_; }

 private:
  void check_trains() const;
  void check_signal() const;
  void add_recorders(gantry::CommandContext& context);
  void name_hooks();
  void read_before();

  const Arguments& arguments_;
  std::vector<std::string> program_;
  gantry::Config solver_, env_;  // resolved
  std::vector<gantry::Config> recorders_;
  std::vector<Hook> hooks_;
  std::vector<std::string> added_;
  Before before_;
};

}  // namespace stop_and_go
