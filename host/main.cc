#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "gantry/error.h"
#include "gantry/plugin_entry.h"
#include "gantry/run_command.h"
#include "gantry/text.h"
#include "gantry/version.h"
#include "host/arguments.h"
#include "host/commands.h"
#include "host/console_log.h"
#include "host/plugin_catalogue.h"

namespace gantry::host {
namespace {

using Words = std::vector<std::string>;

struct BuiltIn {
  const char* name;
  const char* summary;
  int (*run)(const Words&);
};

int command_version(const Words& words) {
  Arguments arguments("version", "", "Shows the program's version, and the build that plugins have to fit.");
  if (!arguments.parse(words, 0, 0)) return kExitDone;
  std::cout << "gantry " << GANTRY_VERSION << "\nSDK ABI " << GANTRY_SDK_ABI << '\n' << build_note();
  return kExitDone;
}

constexpr BuiltIn kBuiltIns[] = {
    {"run", "train, evaluate or test as a configuration says", command_run},
    {"check", "check a configuration, run nothing", command_check},
    {"list", "list the components that plugins provide", command_list},
    {"describe", "show a component's parameters and a YAML template", command_describe},
    {"plugins list", "list the plugin files found, and why some are not used", command_plugins_list},
    {"plugins inspect", "show what a plugin file says about itself", command_plugins_inspect},
    {"version", "show versions and the build that plugins have to fit", command_version},
};

/// What is typed for a registered name, and back: "plugins check", "plugins.check".
std::string replaced(std::string name, char from, char to) {
  std::replace(name.begin(), name.end(), from, to);
  return name;
}

std::string first_words(const Words& words, std::size_t count) {
  return join({words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count)}, " ");
}

Words from(const Words& words, std::size_t count) {
  return {words.begin() + static_cast<std::ptrdiff_t>(count), words.end()};
}

/// As they are typed; without those that the program's own commands hide.
Words commands_of_plugins(const PluginCatalogue& catalogue) {
  Words names;
  for (const std::string& registered : catalogue.names("command")) {
    const std::string name = replaced(registered, '.', ' ');
    const bool hidden = std::any_of(std::begin(kBuiltIns), std::end(kBuiltIns), [&](const BuiltIn& command) {
      return (name + " ").starts_with(cat(command.name, " "));
    });
    if (!hidden) names.push_back(name);
  }
  return names;
}

/// How many of the first words are options of the program itself, which stand before the command's name.
std::size_t count_options(const Words& words) {
  std::size_t count = 0;
  while (count < words.size() && (words[count].starts_with("--plugin-dir") || words[count].starts_with("--log-level")))
    count += words[count].find('=') == std::string::npos ? 2 : 1;
  return std::min(count, words.size());
}

/// The words that start this program again, with the options that it was given.
Words this_program(const Words& given) {
  Words words{std::filesystem::read_symlink("/proc/self/exe").string()};
  words.insert(words.end(), given.begin(), given.end());
  return words;
}

void print_row(const std::string& name, const std::string& summary) {
  std::cout << "  " << name << std::string(name.size() < 17 ? 17 - name.size() : 1, ' ') << summary << '\n';
}

void print_help(PluginCatalogue& catalogue) {
  std::cout << "usage: gantry [--plugin-dir DIR ...] COMMAND [arguments]\n\n";
  for (const BuiltIn& command : kBuiltIns) print_row(command.name, command.summary);
  std::cout << std::flush;  // it stands there whatever the plugins do
  const Words names = commands_of_plugins(catalogue);
  if (!names.empty()) std::cout << "\nfrom plugins\n";
  for (const std::string& name : names) print_row(name, catalogue.listed("command", replaced(name, ' ', '.')).summary);
  std::cout << "\ngantry COMMAND --help shows a command's arguments.\n";
}

[[noreturn]] void fail_unknown(const Words& words, const PluginCatalogue& catalogue) {
  Words names = commands_of_plugins(catalogue), deeper;
  for (const BuiltIn& command : kBuiltIns) names.push_back(command.name);
  for (const std::string& name : names)
    if (name.starts_with(words[0] + " ")) deeper.push_back(name.substr(words[0].size() + 1));
  if (!deeper.empty() && words.size() == 1)
    fail_usage("", cat("gantry ", words[0], ": expected ", join(deeper, " or ")));
  Words near = near_matches(first_words(words, std::min<std::size_t>(words.size(), 2)), names);
  if (near.empty()) near = near_matches(words[0], names);
  const std::string typed = deeper.empty() ? words[0] : first_words(words, 2);
  const std::string hint = catalogue.hint("command", words[0]);
  fail_usage("", cat("unknown command '", typed, "'", near.empty() ? "" : "; did you mean " + near[0] + "?",
                     hint.empty() ? "" : "\n", hint));
}

std::optional<int> run_built_in(const Words& options, const Words& words) {
  for (const BuiltIn& command : kBuiltIns) {
    for (std::size_t count = 1; count <= std::min<std::size_t>(words.size(), 2); ++count) {
      if (first_words(words, count) != command.name) continue;
      Words arguments = options;
      arguments.insert(arguments.end(), words.begin() + static_cast<std::ptrdiff_t>(count), words.end());
      return command.run(arguments);
    }
  }
  return std::nullopt;
}

int dispatch(const Words& all) {
  const std::size_t options_end = count_options(all);
  const Words given(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(options_end));
  Words words = from(all, options_end);
  if (!words.empty() && words[0] == "--version") words[0] = "version";
  // The program's own commands come first: no plugin replaces them, and for them none is looked for.
  if (const std::optional<int> code = run_built_in(given, words)) return *code;

  Arguments options("", "COMMAND", "");
  options.plugin_dirs().log_level();
  options.parse(given, 0, 0);
  const auto log = std::make_shared<ConsoleLog>(ConsoleLog::Stream::err, options.log_level_value());
  PluginCatalogue catalogue(options.plugin_dir_values(), Logger(log, ""));
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help(catalogue);
    return words.empty() ? kExitConfigError : kExitDone;
  }
  const Words names = commands_of_plugins(catalogue);
  for (std::size_t count = words.size(); count > 0; --count) {
    const std::string name = first_words(words, count);
    if (std::find(names.begin(), names.end(), name) != names.end())
      return run_command(replaced(name, ' ', '.'), from(words, count),
                         {catalogue, log, resolver(options.plugin_dir_values(), log), this_program(given)});
  }
  fail_unknown(words, catalogue);
}

int guarded(const Words& words) {
  try {
    return dispatch(words);
  } catch (const ComponentError& error) {
    std::cerr << "internal error: " << error.what() << std::endl;
    return kExitInternalError;
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
