#include <gantry/command.h>
#include <gantry/error.h>
#include <gantry/json.h>
#include <gantry/plugin_file.h>
#include <gantry/text.h>
#include <gantry/version.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "arguments.h"
#include "component_facts.h"
#include "trial.h"
#include "work_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace plugins_check;

constexpr int kDone = 0;
constexpr int kFound = 1;
constexpr int kUnusable = 2;

/// The words that start the program, from any folder, so that it finds the file first.
std::vector<std::string> program_for(const std::string& file, const std::vector<std::string>& program) {
  std::vector<std::string> words{program.front(), "--plugin-dir", fs::path(file).parent_path().string()};
  const std::string option = "--plugin-dir";
  for (std::size_t i = 1; i < program.size(); ++i) {
    if (program[i].starts_with(option + "=")) {
      words.push_back(option + "=" + fs::absolute(program[i].substr(option.size() + 1)).string());
    } else if (program[i] == option && i + 1 < program.size()) {
      words.insert(words.end(), {option, fs::absolute(program[++i]).string()});
    } else {
      words.push_back(program[i]);
    }
  }
  return words;
}

std::string folder_name(const Candidate& candidate) {
  std::string name = candidate.kind + "-" + candidate.name;
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

std::string component_text(const Result& result) { return result.kind + " " + result.name; }

std::string result_json(const Result& result) {
  return gantry::json_object({{"kind", gantry::json_string(result.kind)},
                              {"name", gantry::json_string(result.name)},
                              {"verdict", gantry::json_string(verdict_text(result.verdict))},
                              {"why", gantry::json_string(result.why)}});
}

class PluginsCheckCommand final : public gantry::Command {
 public:
  PluginsCheckCommand(const gantry::Config&, gantry::Context&) {}

  std::string usage() const override { return usage_text(); }

  int run(const std::vector<std::string>& words, gantry::CommandContext& context) override {
    const Arguments arguments = parse_arguments(words);
    if (arguments.load) return load(arguments, context);
    int interrupted_by = 0;
    try {
      return check(arguments, context);
    } catch (const Interrupted& interrupted) {
      interrupted_by = interrupted.signal;
    }
    ::raise(interrupted_by);
    return kFound;
  }

 private:
  /// In a child: whatever this plugin does while it is loaded, it does it here.
  static int load(const Arguments& arguments, gantry::CommandContext& context) {
    const gantry::ComponentInfo* component =
        context.catalogue().find(arguments.kind, arguments.name, arguments.file, {"gantry plugins check", 0, 0});
    if (component == nullptr)
      throw gantry::Error(gantry::cat(arguments.file, " provides no ", arguments.kind, " ", arguments.name));
    std::cout << '\n' << facts_line(*component) << std::endl;
    return kDone;
  }

  static int check(const Arguments& arguments, gantry::CommandContext& context) {
    const gantry::PluginFile file = gantry::read_plugin_file(arguments.file);
    if (const std::string problem = file.problem(); !problem.empty()) return unusable(arguments, problem);
    const std::vector<Candidate> all = candidates(file, arguments.overrides);
    const HeldSignals signals;
    const WorkFolder folder(arguments.work_dir);
    if (!arguments.json) std::cout << file.title() << " (" << file.path << ")" << std::endl;
    std::size_t width = 0;
    for (const Candidate& candidate : all) width = std::max(width, candidate.kind.size() + 1 + candidate.name.size());
    std::vector<Result> results;
    for (const Candidate& candidate : all) {
      const std::string own = folder.path() + "/" + folder_name(candidate);
      fs::create_directories(own);
      results.push_back(
          try_component(candidate, {program_for(file.path, context.program()), own, arguments.limit, signals}));
      if (!arguments.json) print(results.back(), width);
    }
    return conclude(arguments, file, results);
  }

  static int unusable(const Arguments& arguments, const std::string& problem) {
    if (arguments.json)
      std::cout << gantry::json_object({{"file", gantry::json_string(arguments.file)},
                                        {"usable", "false"},
                                        {"why", gantry::json_string(problem)},
                                        {"components", "[]"}})
                << std::endl;
    else
      std::cout << arguments.file << "\n  " << problem << std::endl;
    return kUnusable;
  }

  static void print(const Result& result, std::size_t width) {
    const std::string component = component_text(result);
    std::cout << "  " << component << std::string(width - component.size() + 2, ' ') << verdict_text(result.verdict)
              << (result.why.empty() ? "" : ": ") << result.why << std::endl;
  }

  static int conclude(const Arguments& arguments, const gantry::PluginFile& file, const std::vector<Result>& results) {
    const auto count = [&](Verdict verdict) {
      return std::count_if(results.begin(), results.end(), [&](const Result& r) { return r.verdict == verdict; });
    };
    if (arguments.json) {
      std::vector<std::string> items;
      for (const Result& result : results) items.push_back(result_json(result));
      std::cout << gantry::json_object({{"file", gantry::json_string(file.path)},
                                        {"plugin", gantry::json_string(file.title())},
                                        {"usable", "true"},
                                        {"components", gantry::json_array(items)}})
                << std::endl;
    } else {
      std::vector<std::string> counts;
      for (const Verdict verdict : {Verdict::ok, Verdict::forgets, Verdict::fails, Verdict::not_tried})
        if (count(verdict) > 0) counts.push_back(gantry::cat(count(verdict), ' ', verdict_text(verdict)));
      std::cout << (counts.empty() ? "it provides nothing" : gantry::join(counts, ", ")) << std::endl;
    }
    return count(Verdict::forgets) + count(Verdict::fails) > 0 ? kFound : kDone;
  }
};

}  // namespace

GANTRY_PLUGIN("gantry-plugins-check", GANTRY_VERSION);
GANTRY_COMMAND(PluginsCheckCommand, "plugins.check",
               "try each component of a plugin, and see whether it survives stopping and going on");
