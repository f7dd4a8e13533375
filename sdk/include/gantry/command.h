#pragma once

#include <string>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/config.h"
#include "gantry/context.h"
#include "gantry/export.h"
#include "gantry/log.h"
#include "gantry/plugin.h"

namespace gantry {

/// What a command may reach. Main thread; valid while Command::run runs. No virtual functions: it may grow without any
/// plugin noticing.
class GANTRY_API CommandContext final {
 public:
  const Logger& logger() const;     ///< to stderr, tagged with the plugin
  Catalogue& catalogue() const;     ///< every component that the program finds
  const std::string& name() const;  ///< as it is typed: "plugins check"
  /// A configuration with everything that it names, checked and with its defaults, as `gantry run` takes it. Problems are
  /// printed, and leave as a gantry::Error that counts them.
  Config resolve(const std::string& path, const std::vector<std::string>& overrides) const;
  /// The words that start this program with the options that it was given itself (--plugin-dir): a command and its
  /// arguments follow. To run another process.
  const std::vector<std::string>& program() const;

  struct Impl;
  explicit CommandContext(const Impl& impl) : impl_(impl) {}

 private:
  const Impl& impl_;
};

/// A subcommand of the program, `gantry NAME ARGUMENTS...`; a dot in the registered name is a space on the command
/// line ("plugins.check"). Registered with GANTRY_COMMAND; it has no parameters of its own, and nothing of a run is
/// there: its constructor's Context has a logger and nothing else of use.
///
/// Main thread. Results go to stdout, everything else to the logger.
class GANTRY_API Command {
 public:
  virtual ~Command();
  /// Of `--help`, which the program answers itself: "usage: gantry inspect [--json] PATH\n\n..."
  virtual std::string usage() const = 0;
  /// Returns the exit code: 0 done, 1 no, 2 wrong arguments or unusable input. A gantry::Error leaves with its message
  /// and exit code 2.
  virtual int run(const std::vector<std::string>& arguments, CommandContext& context) = 0;
};

}  // namespace gantry
