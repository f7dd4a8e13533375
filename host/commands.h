#pragma once

#include <string>
#include <vector>

/// The program's commands. Each takes the arguments after its name and returns the exit code.
namespace gantry::host {

inline constexpr int kExitDone = 0;
inline constexpr int kExitConfigError = 2;
inline constexpr int kExitInternalError = 3;

int command_run(const std::vector<std::string>& arguments);
int command_check(const std::vector<std::string>& arguments);
int command_list(const std::vector<std::string>& arguments);
int command_describe(const std::vector<std::string>& arguments);
int command_plugins_list(const std::vector<std::string>& arguments);
int command_plugins_inspect(const std::vector<std::string>& arguments);

}  // namespace gantry::host
