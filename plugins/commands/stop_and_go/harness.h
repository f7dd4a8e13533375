#pragma once

#include <gantry/command.h>

#include <string>
#include <vector>

#include "arguments.h"
#include "job.h"
#include "report.h"
#include "runs.h"

namespace stop_and_go {

/// Does what the command is for, and says so on stdout as it goes.
class Harness final {
 public:
  Harness(const Arguments& arguments, const Job& job, WorkTree& tree, Children& children, gantry::Logger logger,
          Report& report);

  /// The continuous run, the interrupted one, and whether they are the same. Returns the exit code.
  int compare();
  /// --mutate. Returns the exit code.
  int mutate();

 private:
  void run_continuous();
  std::vector<Comparison> compare_with_continuous(const std::vector<Run>& segments);
  std::vector<std::string> what_is_not_shown() const;
  void look_for_repetition();
  void list_items(const Items& items) const;
  std::vector<std::string> items_to_change(const Items& items) const;
  Report::Change try_change(const Run& stopped, const std::string& path);

  const Arguments& arguments_;
  const Job& job_;
  WorkTree& tree_;
  Children& children_;
  Runs runs_;
  Report& report_;
  Course course_;
};

}  // namespace stop_and_go
