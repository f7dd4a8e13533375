#pragma once

#include <string>
#include <string_view>

#include "gantry/config.h"

namespace gantry::host {

/// Reads a configuration file: one YAML document whose top level is a map. Every value knows its line; an
/// alias shares the value that it names. Throws ConfigError, with the line, for anything that is not plainly
/// such a file: duplicate keys, several documents, merge keys, tags of other kinds than YAML's own scalars,
/// control characters, bytes that are no UTF-8, and sizes that no configuration has.
Config read_yaml_file(const std::string& path);

/// The same for text in memory; `name` stands for the file in messages.
Config read_yaml_text(std::string_view text, const std::string& name);

}  // namespace gantry::host
