#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/log.h"

/// One run of a resolved configuration. What the host calls; a plugin has no need of this header.

namespace gantry {

enum class RunStatus { done, failed, interrupted };

/// Where requests to pause come from outside: signals. The host implements it. Main thread, but for the signals.
class GANTRY_API Interrupts {
 public:
  virtual ~Interrupts();
  /// From now on these signals ("SIGTERM") are noted and end nothing. Others stay as they are.
  virtual void arm(const std::vector<std::string>& signals) = 0;
  /// The first signal noted since then, as "SIGTERM"; nullptr when there was none. Costs a load.
  virtual const char* pending() const = 0;
  /// From now on signals are ignored: all that there is to save is saved.
  virtual void ignore() = 0;
};

struct RunOptions {
  /// Two iterations of each phase, in a temporary WORK_DIR that is removed afterwards.
  bool dry_run = false;
  /// Go on from a checkpoint also where settings that the result depends on are others than when it was saved.
  bool allow_config_change = false;
  Interrupts* interrupts = nullptr;  ///< null: signals do what they do
};

struct RunReport {
  RunStatus status = RunStatus::failed;
  int exit_code = 3;
  int64_t epoch = 0;
  int64_t iteration = 0;
  double seconds = 0;  ///< of training alone: no set-up, no evaluation
  double samples_per_s = 0;
  /// Per mode, in the order in which they were computed.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>> metrics;
  std::string work_dir;
  std::string checkpoint;  ///< the last one that this run wrote, or went on from; empty: none
  /// What SAVE_BEST_BY and the like went by, with the best value of the whole training.
  std::vector<std::pair<std::string, double>> best;
  /// What went wrong, empty otherwise. `error_file`, `error_line`: the place in the configuration.
  std::string error, error_file, error_plugin, error_point;
  int error_line = 0;
  int64_t error_iteration = -1;

  /// One line of JSON, as `gantry run --json` prints it.
  GANTRY_API std::string json() const;
};

/// Builds SOLVER, solves, and reports. Throws nothing: every failure is in the report, and logged.
GANTRY_API RunReport run_session(const Config& resolved, Catalogue& catalogue, std::shared_ptr<LogSink> sink,
                                 const RunOptions& options);

}  // namespace gantry
