#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gantry/config.h"

/// The program's commands. Each takes the arguments after its name and returns the exit code.
namespace gantry::host {

class ConsoleLog;

inline constexpr int kExitDone = 0;
inline constexpr int kExitConfigError = 2;
inline constexpr int kExitInternalError = 3;

int command_run(const std::vector<std::string>& arguments);
int command_check(const std::vector<std::string>& arguments);
int command_list(const std::vector<std::string>& arguments);
int command_describe(const std::vector<std::string>& arguments);
int command_plugins_list(const std::vector<std::string>& arguments);
int command_plugins_inspect(const std::vector<std::string>& arguments);

/// What a plugin's command calls to have a configuration checked as `check` does, see gantry/command.h.
std::function<Config(const std::string& path, const std::vector<std::string>& overrides)> resolver(
    std::vector<std::string> plugin_dirs, std::shared_ptr<ConsoleLog> log);

}  // namespace gantry::host
