#pragma once

#include <string>
#include <vector>

#include "gantry/config.h"

namespace gantry::host {

/// Where plugins are looked for, first to last: `arguments` (--plugin-dir), PLUGIN_DIRS of `config` (each
/// relative to the file that names it), GANTRY_PLUGIN_PATH, the user's data folder, the program's own
/// prefix. Absolute. Throws ConfigError when one of the first two is no directory; the others may be missing.
std::vector<std::string> search_path(const std::vector<std::string>& arguments, const Config& config);

/// The folder above the one that holds the running program.
std::string program_prefix();

}  // namespace gantry::host
