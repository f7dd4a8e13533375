#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <tuple>

#include "gantry/compose.h"
#include "gantry/session.h"
#include "host/arguments.h"
#include "host/commands.h"
#include "host/console_log.h"
#include "host/plugin_catalogue.h"
#include "host/search_path.h"
#include "host/signals.h"
#include "host/yaml_reader.h"

/// run and check: what needs a whole configuration.

namespace gantry::host {
namespace {

/// A configuration with everything that it names, checked.
struct Job {
  Config config;                               // resolved; usable only without problems
  std::unique_ptr<PluginCatalogue> catalogue;  // null when the files could not be read
  std::vector<ConfigError> problems;           // sorted by place
  std::vector<ConfigError> notes;              // what is accepted and has no effect
};

Job prepare(const std::string& path, const std::vector<std::string>& overrides,
            const std::vector<std::string>& plugin_dirs, const std::shared_ptr<ConsoleLog>& log) {
  const auto variable = [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  Job job;
  try {
    const Config composed = compose(path, overrides, {read_yaml_file, variable}, job.problems);
    if (job.problems.empty()) {
      PluginIndex index(search_path(plugin_dirs, composed));
      job.catalogue = std::make_unique<PluginCatalogue>(std::move(index), Logger(log, ""));
      job.config = resolve(composed, *job.catalogue, job.problems, &job.notes);
    }
  } catch (const ConfigError& error) {
    job.problems.push_back(error);
  }
  std::stable_sort(job.problems.begin(), job.problems.end(), [](const ConfigError& a, const ConfigError& b) {
    const auto key = [](const SourceLocation& where) { return std::tie(where.file, where.line, where.column); };
    return key(a.where()) < key(b.where());
  });
  for (const ConfigError& note : job.notes) std::cerr << "note: " << note.what() << '\n';
  for (const ConfigError& problem : job.problems) std::cerr << "error: " << problem.what() << '\n';
  if (const std::size_t n = job.problems.size(); n > 0) std::cerr << n << (n == 1 ? " problem" : " problems") << '\n';
  return job;
}

Job prepare(const Arguments& arguments, const std::shared_ptr<ConsoleLog>& log) {
  return prepare(arguments.operands()[0], {arguments.operands().begin() + 1, arguments.operands().end()},
                 arguments.plugin_dir_values(), log);
}

RunReport run(const Arguments& arguments, const std::shared_ptr<ConsoleLog>& log, Signals& signals) {
  const Job job = prepare(arguments, log);
  if (job.problems.empty()) {
    RunOptions options;
    options.dry_run = arguments.has("dry-run");
    options.allow_config_change = arguments.has("allow-config-change");
    // A dry run saves nothing, so that there is nothing to wait for.
    if (!options.dry_run) options.interrupts = &signals;
    return run_session(job.config, *job.catalogue, log, options);
  }
  const ConfigError& first = job.problems.front();
  RunReport report;
  report.exit_code = kExitConfigError;
  report.error = first.what();
  report.error_file = first.where().file;
  report.error_line = first.where().line;
  return report;
}

// A training step frees and allocates the same batch-sized buffers over and over. By default each goes back
// to the kernel and comes again page by page, which was measured at up to a fifth of a small step.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace

int command_run(const std::vector<std::string>& words) {
  keep_freed_memory();
  Arguments arguments(
      "run", "CONFIG [KEY=VALUE...]",
      "Trains, evaluates or tests as CONFIG says. KEY=VALUE replaces a value of it, for example\n"
      "SOLVER.OPTIMIZER.LEARNING_RATE=0.1 or SOLVER.TRAIN_HOOKS[LogHook].LOG_INTERVAL=5.\n"
      "\n"
      "With a CheckpointHook in CONFIG, SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 save and\n"
      "pause (ENV.SIGNALS names others); with or without one, ENV.MAX_RUN_TIME=4h pauses in time.\n"
      "SOLVER.RESUME_FROM=auto goes on at the newest checkpoint in WORK_DIR, or begins when there is none:\n"
      "  gantry run CONFIG SOLVER.RESUME_FROM=auto\n"
      "Settings on which the result depends must be those of the checkpoint.\n"
      "\n"
      "Exit codes: 0 done, 1 training failed, 2 configuration or plugin error, 3 internal error,\n"
      "75 paused, with a complete checkpoint.");
  arguments.flag("dry-run", "two iterations of each phase, in a temporary WORK_DIR")
      .flag("allow-config-change", "go on from a checkpoint with other settings than it was saved with")
      .flag("json", "log to stderr, and end stdout with one line of JSON")
      .plugin_dirs()
      .log_level();
  if (!arguments.parse(words, 1, words.size())) return kExitDone;
  const bool json = arguments.has("json");
  const auto log = std::make_shared<ConsoleLog>(json ? ConsoleLog::Stream::err : ConsoleLog::Stream::out,
                                                arguments.log_level_value());
  Signals signals;
  RunReport report;
  try {
    report = run(arguments, log, signals);
  } catch (...) {
    report.exit_code = kExitInternalError;
    report.error = "internal error: " + current_exception_message();
    std::cerr << report.error << std::endl;
  }
  log->status({});
  if (json) std::cout << report.json() << std::endl;
  return report.exit_code;
}

int command_check(const std::vector<std::string>& words) {
  Arguments arguments("check", "CONFIG [KEY=VALUE...]",
                      "Checks a configuration as `gantry run` would, and runs nothing.");
  arguments.flag("print", "print the resolved configuration, with all defaults").plugin_dirs().log_level();
  if (!arguments.parse(words, 1, words.size())) return kExitDone;
  const auto log = std::make_shared<ConsoleLog>(ConsoleLog::Stream::err, arguments.log_level_value());
  const Job job = prepare(arguments, log);
  if (!job.problems.empty()) return kExitConfigError;
  if (arguments.has("print")) {
    std::cout << job.config.yaml();
  } else {
    std::cout << arguments.operands()[0] << ": ok\nsolver: " << job.config.find("SOLVER")->name() << '\n';
  }
  return kExitDone;
}

std::function<Config(const std::string&, const std::vector<std::string>&)> resolver(
    std::vector<std::string> plugin_dirs, std::shared_ptr<ConsoleLog> log) {
  return [plugin_dirs = std::move(plugin_dirs), log = std::move(log)](const std::string& path,
                                                                      const std::vector<std::string>& overrides) {
    const Job job = prepare(path, overrides, plugin_dirs, log);
    if (!job.problems.empty()) throw Error("the configuration cannot be used");
    return job.config;
  };
}

}  // namespace gantry::host
