#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/config.h"
#include "gantry/export.h"

/// From files to a configuration that components can be built from. The host parses the files and prints
/// the problems; a plugin has no need of this header.

namespace gantry {

struct ComposeSources {
  /// Parses one file; throws ConfigError.
  std::function<Config(const std::string& path)> read;
  /// A variable's value for ${VAR}; std::nullopt when it is not set.
  std::function<std::optional<std::string>(const std::string& name)> variable;
};

/// Reads `path`, follows _BASE (relative to the file that names it; recursive; later entries of a list win),
/// replaces ${VAR} and ${VAR:-default} in scalars, then applies `overrides`, each "A.B.C=value" with a YAML
/// scalar or flow value; list items are addressed as [index] or [NAME]. Problems are collected, not thrown,
/// so that all are seen at once; the result is usable only when there are none.
///
/// Merging: maps merge key by key, everything else is replaced. `$${` is a literal "${".
GANTRY_API Config compose(const std::string& path, const std::vector<std::string>& overrides,
                          const ComposeSources& sources, std::vector<ConfigError>& problems);

/// Checks a composed configuration against what the named components declare, and fills in defaults.
/// All problems at once, sorted by place. The result is usable only when there are none. `notes`: what is accepted and
/// has no effect, with its place.
GANTRY_API Config resolve(const Config& composed, Catalogue& catalogue, std::vector<ConfigError>& problems,
                          std::vector<ConfigError>* notes = nullptr);

/// What ENV and the top level accept, for `describe ENV` and the catalogue.
GANTRY_API Parameters env_parameters();

}  // namespace gantry
