#include "runs.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <deque>
#include <fstream>

namespace stop_and_go {
namespace {

constexpr int kPaused = 75;
constexpr int kConfigError = 2;
constexpr std::size_t kShownLines = 12;

}  // namespace

std::optional<gantry::CheckpointInfo> newest_checkpoint(const std::string& work_dir) {
  const std::vector<gantry::CheckpointInfo> all = gantry::CheckpointStore(work_dir + "/checkpoints").list();
  for (auto info = all.rbegin(); info != all.rend(); ++info) {
    try {
      gantry::verify_checkpoint(*info);
      return *info;
    } catch (const gantry::Error&) {
      // A run passes it over as well.
    }
  }
  return std::nullopt;
}

std::string last_lines(const std::string& log, std::size_t count) {
  std::ifstream in(log, std::ios::binary);
  std::deque<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    lines.push_back("  | " + line);
    if (lines.size() > count) lines.pop_front();
  }
  return gantry::join({lines.begin(), lines.end()}, "\n");
}

void Runs::fail(const Run& run, int exit_code, const std::string& what) {
  tree_.keep();
  const std::string lines = last_lines(run.log, kShownLines);
  throw Failure(exit_code,
                gantry::cat(run.name, ": ", what, lines.empty() ? "" : "\n", lines, "\nits output: ", run.log));
}

Run Runs::continuous(const std::string& folder) {
  return segment(folder == "continuous" ? "continuous run" : "second continuous run", folder, nullptr, std::nullopt);
}

Run Runs::segment(const std::string& name, const std::string& folder, const Run* previous,
                  const std::optional<Moment>& stop) {
  Run run = prepare(name, folder, previous, stop);
  start(run);
  check(run);
  return run;
}

Run Runs::prepare(const std::string& name, const std::string& folder, const Run* previous,
                  const std::optional<Moment>& stop) {
  Run run;
  run.name = name;
  run.work_dir = tree_.path(folder);
  run.log = tree_.path(folder + ".log");
  run.stop = stop;
  if (previous == nullptr) return run;
  copy_work_dir(previous->work_dir, run.work_dir);
  run.from = newest_checkpoint(previous->work_dir);
  return run;
}

void Runs::start(Run& run) {
  Job::Process process;
  process.work_dir = run.work_dir;
  process.config = run.work_dir + ".yaml";
  process.resumes = run.from.has_value();
  if (run.stop.has_value()) process.stop = run.stop->place;
  logger_.status(gantry::cat(run.name, " is running; its output: ", run.log));
  run.ending = children_.run(job_.command(process), run.log);
  logger_.status({});
}

void Runs::check(Run& run) {
  const Ending& ending = run.ending;
  const std::string ended = gantry::cat("ended with ", ending.text());
  const std::string asked = run.stop.has_value() ? run.stop->place.sentence() : "";
  if (ending.exit_code == kConfigError) fail(run, 2, ended);
  if (!run.stop.has_value()) {
    run.newest = newest_checkpoint(run.work_dir);
    if (ending.exit_code == kPaused)
      fail(run, 2,
           gantry::cat("paused by itself (", run.newest.has_value() ? run.newest->why : "no checkpoint",
                       "), where it should have run to its end: take out what pauses it"));
    if (ending.exit_code != 0) fail(run, 1, ended);
    return;
  }
  if (ending.exit_code == 0)
    fail(run, 1, gantry::cat("was to be stopped ", asked, ", and ran to its end: the stop did not happen"));
  run.newest = newest_checkpoint(run.work_dir);
  const std::string checkpoint = run.newest.has_value() ? run.newest->name : "none";
  if (arguments_.kill()) {
    if (ending.signal != SIGKILL) fail(run, 1, gantry::cat("was to be killed ", asked, ", and ", ended));
    run.cause = gantry::cat("SIGKILL; newest checkpoint: ", checkpoint);
    return;
  }
  if (ending.exit_code != kPaused)
    fail(run, 1, gantry::cat("was to pause ", asked, " (exit code ", kPaused, "), and ", ended));
  if (!run.newest.has_value()) fail(run, 1, gantry::cat("paused ", asked, ", and left no whole checkpoint"));
  const std::string signal = "SIG" + arguments_.signal;
  if (run.newest->iteration != run.stop->iteration)
    fail(run, 1,
         gantry::cat("was to pause ", asked, ", with a checkpoint of iteration ", run.stop->iteration,
                     "; its newest one is ", checkpoint, " of iteration ", run.newest->iteration));
  if (run.newest->why.find(signal) == std::string::npos)
    fail(run, 1, gantry::cat("was to pause because of ", signal, "; it did because of: ", run.newest->why));
  run.cause = gantry::cat(signal, ", saved ", checkpoint);
}

}  // namespace stop_and_go
