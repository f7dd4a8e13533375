#include <filesystem>
#include <iostream>

#include "gantry/json.h"
#include "host/arguments.h"
#include "host/commands.h"
#include "host/plugin_index.h"
#include "host/search_path.h"

namespace gantry::host {

int command_plugins_list(const std::vector<std::string>& words) {
  Arguments arguments("plugins list", "", "Lists every file that the search for plugins sees, and what becomes of it.");
  arguments.flag("json", "print a JSON array").plugin_dirs();
  if (!arguments.parse(words, 0, 0)) return kExitDone;
  const PluginIndex index(search_path(arguments.plugin_dir_values(), Config()));
  if (arguments.has("json")) {
    std::vector<std::string> items;
    for (const PluginFile& file : index.files()) items.push_back(plugin_json(file, index.status(file)));
    std::cout << json_array(items) << std::endl;
    return kExitDone;
  }
  for (const PluginFile& file : index.files()) std::cout << plugin_summary(file, index.status(file));
  if (index.files().empty()) std::cout << "no plugins found; searched\n" << index.directories_text();
  return kExitDone;
}

int command_plugins_inspect(const std::vector<std::string>& words) {
  Arguments arguments("plugins inspect", "FILE",
                      "Shows what a plugin says about itself, without loading it, beside what this program needs.\n"
                      "Exit code 0 when it fits, 2 when it does not.");
  arguments.flag("json", "print one line of JSON");
  if (!arguments.parse(words, 1, 1)) return kExitDone;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(arguments.operands()[0], error);
  const PluginFile file = read_plugin_file(error ? arguments.operands()[0] : path.lexically_normal().string());
  const std::string problem = file.problem();
  const std::string status = problem.empty() ? "ok" : problem;
  std::cout << (arguments.has("json") ? plugin_json(file, status) + "\n" : plugin_inspection(file, status));
  return problem.empty() ? kExitDone : kExitConfigError;
}

}  // namespace gantry::host
