#pragma once

#include <gantry/plugin_file.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "toy_training.h"

namespace plugins_check {

/// What was typed after `gantry plugins check`.
struct Arguments {
  std::string file;  ///< absolute
  std::vector<std::string> overrides;
  bool json = false;
  std::chrono::seconds limit{120};
  std::string work_dir;  ///< empty: a temporary one
  /// --load FILE KIND NAME, what this command asks of a child: load one component and print what it declares.
  bool load = false;
  std::string kind, name;
};

/// Throws gantry::Error that says what is wrong and where to find help.
Arguments parse_arguments(const std::vector<std::string>& words);
std::string usage_text();

/// The file's components, each with what was given for it. Throws gantry::Error for what belongs to none.
std::vector<Candidate> candidates(const gantry::PluginFile& file, const std::vector<std::string>& overrides);

}  // namespace plugins_check
