#include <iostream>
#include <string>
#include <vector>

#include "gantry/error.h"
#include "gantry/plugin_entry.h"
#include "gantry/text.h"
#include "gantry/version.h"
#include "host/arguments.h"
#include "host/commands.h"

namespace gantry::host {
namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>&);
};

int command_version(const std::vector<std::string>& words) {
  Arguments arguments("version", "", "Shows the program's version, and the build that plugins have to fit.");
  if (!arguments.parse(words, 0, 0)) return kExitDone;
  std::cout << "gantry " << GANTRY_VERSION << "\nSDK ABI " << GANTRY_SDK_ABI << '\n' << build_note();
  return kExitDone;
}

constexpr Command kCommands[] = {
    {"run", "train, evaluate or test as a configuration says", command_run},
    {"check", "check a configuration, run nothing", command_check},
    {"list", "list the components that plugins provide", command_list},
    {"describe", "show a component's parameters and a YAML template", command_describe},
    {"plugins list", "list the plugin files found, and why some are not used", command_plugins_list},
    {"plugins inspect", "show what a plugin file says about itself", command_plugins_inspect},
    {"version", "show versions and the build that plugins have to fit", command_version},
};

void print_help() {
  std::cout << "usage: gantry COMMAND [arguments]\n\n";
  for (const Command& command : kCommands) {
    std::string name = command.name;
    name.resize(17, ' ');
    std::cout << "  " << name << command.summary << '\n';
  }
  std::cout << "\ngantry COMMAND --help shows a command's arguments.\n";
}

int dispatch(std::vector<std::string> words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help();
    return words.empty() ? kExitConfigError : kExitDone;
  }
  if (words[0] == "--version") words[0] = "version";
  const std::string two_words = words.size() > 1 ? words[0] + " " + words[1] : std::string();
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.push_back(command.name);
    if (words[0] == command.name) return command.run({words.begin() + 1, words.end()});
    if (two_words == command.name) return command.run({words.begin() + 2, words.end()});
  }
  if (words[0] == "plugins") fail_usage("", "gantry plugins: expected list, or inspect FILE");
  const std::vector<std::string> near = near_matches(words[0], names);
  fail_usage("", cat("unknown command '", words[0], "'", near.empty() ? "" : "; did you mean " + near[0] + "?"));
}

int guarded(const std::vector<std::string>& words) {
  try {
    return dispatch(words);
  } catch (const Error& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return kExitConfigError;
  } catch (...) {
    std::cerr << "internal error: " << current_exception_message() << std::endl;
    return kExitInternalError;
  }
}

}  // namespace
}  // namespace gantry::host

int main(int argc, char** argv) { return gantry::host::guarded({argv + 1, argv + argc}); }
