#include <signal.h>

#include <algorithm>

#include "regress/trials.h"

// Signals that were lost, that ended a run like any other, or whose checkpoint was not one.

namespace {

using namespace trials;
using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;
using e2e::RunResult;

const Changes kTwoEpochs = {"SOLVER.MAX_EPOCHS=2", windows_of(1)};

}  // namespace

TEST_CASE("the checkpoint of a signal is bit for bit the one that an interval saves there") {
  Job scheduled;
  scheduled.run(kTwoEpochs + Changes{kCheckpoint + "INTERVAL=1 iters"});
  for (const int64_t iteration : {0, 3, 8, 10, 14, 18}) {
    INFO(iteration);
    Job stopped;
    stopped.run(kTwoEpochs + Changes{at_iteration(iteration), kCheckpoint + "INTERVAL=100"}, 75);
    CHECK(stopped.link("last") == "ldm_step-" + std::to_string(iteration + 1));
    CHECK(e2e::checkpoint_difference(scheduled.checkpoint(iteration + 1), stopped.checkpoint(iteration + 1)) == "");
  }
}

TEST_CASE("a run that is done and one that is paused and one that failed end with three exit codes") {
  const auto status = [](const RunResult& result) { return *e2e::json_value(result.last_line(), {"status"}); };
  CHECK(status(Job().run(kTwoEpochs, 0)) == "done");
  CHECK(status(Job().run(kTwoEpochs + Changes{at_iteration(4)}, 75)) == "interrupted");
  CHECK(status(Job().run(kTwoEpochs + Changes{kCheckpoint + "SAVE_BEST_BY=nothing"}, 1)) == "failed");
}

TEST_CASE("a signal before the first batch or in an evaluation or in the last iteration is served within one batch") {
  const Changes changes = kTwoEpochs + Changes{traced("after_iter")};
  struct Place {
    Changes signal;
    std::size_t trained, evaluated;  // batches by the end of the process, at most
  };
  const std::vector<Place> places = {
      {at_point("train.before_epoch", 1), 1, 0},   {at_point("train.before_iter", 1), 1, 0},
      {at_point("train.after_iter", 1, 9), 10, 0}, {at_point("eval.before_epoch", 1), 10, 1},
      {at_point("eval.before_iter", 1, 0), 10, 1}, {at_point("eval.after_iter", 1, 1), 10, 2},
      {at_point("eval.evaluated", 1), 10, 3},      {at_point("train.after_iter", 2, 9), 20, 3},
      {at_point("eval.after_iter", 2, 2), 20, 6},  {at_point("eval.evaluated", 2), 20, 6},
  };
  Job undisturbed;
  undisturbed.run(changes);
  for (const Place& place : places) {
    INFO(place.signal[0] << " " << place.signal[1]);
    Job stopped;
    stopped.run(changes + place.signal, 75);
    std::vector<std::string> lines;
    if (stopped.dir.has("trace.txt")) lines = stopped.lines("trace.txt");
    const auto batches = [&](const char* mode) {
      return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.starts_with(std::string("after_iter ") + mode);
      }));
    };
    CHECK(batches("train") <= place.trained);
    CHECK(batches("eval") <= place.evaluated);
    stopped.resume(changes);
    e2e::check_same_training(undisturbed, stopped);
    e2e::check_same_counts(undisturbed, stopped);
  }
}

TEST_CASE("more signals during a save on a slow disk neither cut it short nor spoil it and it ends in its time") {
  Job undisturbed, stopped;
  undisturbed.run(kTwoEpochs);
  // Each file of a checkpoint takes 300 ms; signals come all the time until the process has ended.
  const Changes slow = kTwoEpochs + Changes{kCheckpoint + "INTERVAL=100", at_iteration(4)};
  std::vector<std::string> command = {
      "/bin/bash", "-c",
      "LD_PRELOAD=" GANTRY_FAULTS_LIBRARY
      " FAULTS_UNDER=$PWD/work/checkpoints FAULTS='fsync .tmp- 1 * sleep:300' \"$@\" & "
      "run=$!; until ls -A work/checkpoints 2>/dev/null | grep -q tmp-; do sleep 0.01; done; sent=0; "
      "while kill -$((sent % 2 ? 15 : 2)) $run 2>/dev/null; do sent=$((sent + 1)); sleep 0.05; done; "
      "echo $sent >sent.txt; wait $run",
      "bash", GANTRY_BINARY};
  for (const std::string& argument : stopped.command(slow)) command.push_back(argument);
  const RunResult result = e2e::run_program(command, stopped.dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 75);
  CHECK(std::stoi(stopped.dir.read("sent.txt")) > 10);
  // Four files and their folder, five times 300 ms: the grace of 30 s that schedulers give is far away.
  CHECK(result.seconds > 1.4);
  CHECK(result.seconds < 15);
  CHECK(stopped.names() == std::vector<std::string>{"last", "ldm_step-5"});
  CHECK(e2e::run_gantry({"inspect", stopped.checkpoint(5)}, stopped.dir.path()).exit_code == 0);
  stopped.resume(kTwoEpochs);
  e2e::check_same_training(undisturbed, stopped);
  e2e::check_same_counts(undisturbed, stopped);
}
