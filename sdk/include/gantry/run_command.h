#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/log.h"

namespace gantry {

/// What the host gives to commands.
struct CommandServices {
  Catalogue& catalogue;
  std::shared_ptr<LogSink> sink;
  std::function<Config(const std::string& path, const std::vector<std::string>& overrides)> resolve;
  std::vector<std::string> program;
};

/// Builds and runs a command (command.h) that the catalogue has, and returns its exit code. `--help` and `-h` among the
/// arguments print its usage instead. A gantry::Error of the command's leaves as it is; whatever else it throws leaves
/// as a ComponentError that names its plugin. What the host calls; a plugin has no need of this header.
GANTRY_API int run_command(const std::string& registered_name, const std::vector<std::string>& arguments,
                           const CommandServices& services);

}  // namespace gantry
