#include <gantry/append_file.h>
#include <gantry/command.h>
#include <gantry/error.h>

#include <filesystem>
#include <iostream>

#include "arguments.h"
#include "child.h"
#include "harness.h"
#include "job.h"
#include "report.h"
#include "work_tree.h"

namespace {

namespace fs = std::filesystem;

/// Where the report is to go, to know before anything runs that it can go there.
std::string report_path(const std::string& asked) {
  if (asked.empty()) return {};
  const fs::path path = fs::absolute(asked).lexically_normal();
  std::error_code problem;
  if (!fs::is_directory(path.parent_path(), problem) || fs::is_directory(path, problem))
    throw gantry::Error("--json " + asked + ": there is no folder for such a file");
  return path.string();
}

/// Compares an interrupted with a continuous run.
class StopAndGoCommand final : public gantry::Command {
 public:
  StopAndGoCommand(const gantry::Config&, gantry::Context&) {}

  std::string usage() const override { return stop_and_go::usage_text(); }

  int run(const std::vector<std::string>& words, gantry::CommandContext& context) override {
    const stop_and_go::Arguments arguments = stop_and_go::parse_arguments(words);
    const std::string json = report_path(arguments.json);
    const stop_and_go::Job job(arguments, context);
    stop_and_go::Report report;
    report.config = arguments.config;
    stop_and_go::Children children;  // before the tree: a signal that waits is served when that is gone
    stop_and_go::WorkTree tree(arguments.work_dir);
    const auto finish = [&](int exit_code) {
      report.exit_code = exit_code;
      report.work_dir = tree.stays() ? tree.path() : "";
      if (tree.stays()) std::cout << "\nEverything is in " << tree.path() << std::endl;
      if (!json.empty()) gantry::replace_file(json, report.json() + "\n");
      return exit_code;
    };
    std::cout << "stop-and-go " << arguments.config << "\n\n" << std::flush;
    try {
      stop_and_go::Harness harness(arguments, job, tree, children, context.logger(), report);
      return finish(arguments.mutate.empty() ? harness.compare() : harness.mutate());
    } catch (const stop_and_go::Failure& failure) {
      report.error = failure.what();
      context.logger().error(failure.what());
      return finish(failure.exit_code);
    } catch (const stop_and_go::Interrupted& interrupted) {
      context.logger().error("ended by " + stop_and_go::signal_text(interrupted.signal));
      return 128 + interrupted.signal;
    } catch (const gantry::Error& error) {
      report.error = error.what();
      finish(2);
      throw;
    }
  }
};

}  // namespace

GANTRY_PLUGIN("gantry-stop-and-go", GANTRY_VERSION);
GANTRY_COMMAND(StopAndGoCommand, "stop-and-go", "prove that stopping a training and going on changes nothing of it");
