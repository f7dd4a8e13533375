#pragma once

#include <gantry/checkpoint.h>
#include <gantry/log.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "child.h"
#include "job.h"
#include "plan.h"
#include "work_tree.h"

namespace stop_and_go {

/// A process that has ended as it should, and what it left.
struct Run {
  std::string name;  ///< "continuous", "segment 2"
  std::string work_dir, log;
  Ending ending;
  std::optional<gantry::CheckpointInfo> from;    ///< what it found and went on from
  std::optional<gantry::CheckpointInfo> newest;  ///< what it left
  std::optional<Moment> stop;
  std::string cause;  ///< of a stop: "SIGTERM, at checkpoint ldm_step-16"
};

/// A process that has not.
struct Failure : std::runtime_error {
  Failure(int code, const std::string& message) : std::runtime_error(message), exit_code(code) {}
  int exit_code;  ///< of the whole command
};

/// Runs the job's processes in a work tree, each in a work dir of its own.
class Runs final {
 public:
  Runs(const Job& job, const Arguments& arguments, WorkTree& tree, Children& children, gantry::Logger logger)
      : job_(job), arguments_(arguments), tree_(tree), children_(children), logger_(std::move(logger)) {}

  /// From start to end. `folder`: below the tree.
  Run continuous(const std::string& folder);
  /// Goes on where `previous` was stopped (nullptr: begins), in a copy of its work dir, up to `stop` or the end.
  Run segment(const std::string& name, const std::string& folder, const Run* previous,
              const std::optional<Moment>& stop);
  /// What `segment` does before it starts its process, and after: for whoever has to change something in between.
  Run prepare(const std::string& name, const std::string& folder, const Run* previous,
              const std::optional<Moment>& stop);
  void start(Run& run);
  /// Throws Failure where the process did not end as it should have.
  void check(Run& run);

 private:
  [[noreturn]] void fail(const Run& run, int exit_code, const std::string& what);

  const Job& job_;
  const Arguments& arguments_;
  WorkTree& tree_;
  Children& children_;
  gantry::Logger logger_;
};

/// The newest one in a work dir, whole.
std::optional<gantry::CheckpointInfo> newest_checkpoint(const std::string& work_dir);

/// The last lines of what a process printed.
std::string last_lines(const std::string& log, std::size_t count);

}  // namespace stop_and_go
