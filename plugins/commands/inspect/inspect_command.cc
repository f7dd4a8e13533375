#include <gantry/checkpoint.h>
#include <gantry/command.h>
#include <gantry/error.h>
#include <gantry/safetensors.h>
#include <gantry/text.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "checkpoint_report.h"
#include "tensors_report.h"

namespace {

namespace fs = std::filesystem;

constexpr int kDone = 0;
constexpr int kDamaged = 1;

[[noreturn]] void fail_arguments(const std::string& message) {
  throw gantry::Error("gantry inspect: " + message + "\ntry: gantry inspect --help");
}

/// For a directory without an account: the checkpoints that the user may have meant.
[[noreturn]] void fail_no_checkpoint(const fs::path& path) {
  std::error_code ignored;
  const fs::path below = path / "checkpoints";
  const fs::path directory = fs::is_directory(below, ignored) ? below : path;
  std::vector<std::string> problems;
  const std::vector<gantry::CheckpointInfo> found = gantry::CheckpointStore(directory.string()).list(&problems);
  // Elsewhere a folder that is no checkpoint is just a folder.
  if (found.empty() && directory.filename() != "checkpoints") problems.clear();
  std::string text = path.string() + " is no checkpoint: there is no checkpoint.json in it";
  if (!found.empty()) text += gantry::cat("; name one of those in ", directory.string(), ":");
  for (const gantry::CheckpointInfo& info : found)
    text += gantry::cat("\n  ", (directory / info.name).string(), "  iteration ", info.iteration, ", epoch ",
                        info.epoch, ", saved ", info.saved);
  for (const std::string& problem : problems) text += gantry::cat("\n  unusable: ", problem);
  throw gantry::Error(text);
}

/// Shows a checkpoint or a safetensors file.
class InspectCommand final : public gantry::Command {
 public:
  InspectCommand(const gantry::Config&, gantry::Context&) {}

  std::string usage() const override {
    return "usage: gantry inspect [--json] CHECKPOINT|FILE.safetensors\n"
           "\n"
           "Shows what is in a checkpoint (a directory, or a link to one such as checkpoints/last) and checks every\n"
           "file of it; or lists the tensors of a safetensors file.\n"
           "\n"
           "  --json  print one JSON object\n"
           "\n"
           "Exit codes: 0 done, 1 a file of the checkpoint is missing or damaged, 2 there is none.\n";
  }

  int run(const std::vector<std::string>& arguments, gantry::CommandContext& context) override {
    bool json = false;
    std::vector<std::string> paths;
    for (const std::string& argument : arguments) {
      if (argument == "--json") {
        json = true;
      } else if (argument.starts_with('-')) {
        fail_arguments("unknown option '" + argument + "'");
      } else {
        paths.push_back(argument);
      }
    }
    if (paths.size() != 1) fail_arguments(gantry::cat("expected one path, got ", paths.size()));
    return inspect(paths[0], json, context.logger());
  }

 private:
  static int inspect(const std::string& path, bool json, const gantry::Logger& logger) {
    std::error_code problem;
    const fs::file_status status = fs::status(path, problem);
    if (status.type() == fs::file_type::not_found) {
      const fs::path target = fs::read_symlink(path, problem);
      throw gantry::Error(problem ? "no such file or directory: " + path
                                  : gantry::cat(path, " is a link to ", target.string(), ", which does not exist"));
    }
    if (problem) throw gantry::Error(gantry::cat("cannot look at ", path, ": ", problem.message()));
    if (!fs::is_directory(status)) {
      const auto file = gantry::SafetensorsFile::open(path);
      std::cout << (json ? tensors_json(file) + "\n" : tensors_text(file)) << std::flush;
      return kDone;
    }
    const fs::path directory = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
    if (!fs::exists(directory / "checkpoint.json", problem)) fail_no_checkpoint(directory);
    try {
      const CheckpointReport report = examine_checkpoint(directory.string());
      std::cout << (json ? report.json() + "\n" : report.text()) << std::flush;
      return report.whole() ? kDone : kDamaged;
    } catch (const gantry::Error& error) {
      logger.error(error.what());
      return kDamaged;
    }
  }
};

}  // namespace

GANTRY_PLUGIN("gantry-inspect", GANTRY_VERSION);
GANTRY_COMMAND(InspectCommand, "inspect", "show and check a checkpoint, or list the tensors of a safetensors file");
