#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "e2e/resume.h"

// What signals do, and when.

namespace {

using e2e::at_iteration;
using e2e::Job;
using e2e::RunResult;

const std::string kSignal = "SOLVER.HOOKS[test/RaiseSignal].SIGNAL=";
const std::string kTimes = "SOLVER.HOOKS[test/RaiseSignal].TIMES=";
/// 12 batches of 2; those from the third on take a second.
const std::string kSlowData =
    "SOLVER.TRAIN_DATA={NAME: test/SlowImages, SIZE: 24, FROM: 4, MS: 500, BATCH_SIZE: 2, SHUFFLE: false, "
    "NUM_WORKERS: 1}";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The job without its CheckpointHook.
std::string unsaved_job() {
  return e2e::replaced(e2e::kJob, "    - {NAME: CheckpointHook, SAVE_LAST: true, SAVE_BEST_BY: -loss}\n", "");
}

RunResult run_in_shell(const Job& job, const std::string& script, const std::vector<std::string>& changes) {
  std::vector<std::string> command{"/bin/sh", "-c", script, "sh", GANTRY_BINARY};
  const std::vector<std::string> arguments = job.command(changes);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return e2e::run_program(command, job.dir.path());
}

}  // namespace

TEST_CASE("each of the five signals saves a checkpoint and pauses the run") {
  Job undisturbed, stopped;
  undisturbed.run({"SOLVER.MAX_EPOCHS=2"});
  const std::vector<std::string> names = {"INT", "TERM", "HUP", "USR1", "USR2"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    INFO(names[i]);
    const int64_t iteration = 3 * static_cast<int64_t>(i);
    const RunResult result = stopped.resume({kSignal + names[i], at_iteration(iteration)}, 75);
    CHECK(contains(result.err, "pausing: SIG" + names[i]));
    CHECK(contains(result.err, "(SIG" + names[i] + ")"));  // why it was saved
    CHECK(e2e::json_value(result.last_line(), {"status"}) == "interrupted");
    CHECK(e2e::json_value(result.last_line(), {"checkpoint"}) == stopped.work("checkpoints/" + stopped.link("last")));
  }
  stopped.resume({"SOLVER.MAX_EPOCHS=2"});
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("more signals while the run is stopping do no harm") {
  Job undisturbed, stopped;
  undisturbed.run({"SOLVER.MAX_EPOCHS=2"});
  stopped.run({kTimes + "5", at_iteration(4)}, 75);
  // The next one has two hooks to send them: in an iteration, and once the checkpoint is there.
  Job again(e2e::replaced(e2e::kJob, "TRAIN_HOOKS: [",
                          "TRAIN_HOOKS: [{NAME: test/RaiseSignal, SIGNAL: INT, AT_ITERATION: 4}, "));
  again.run({kTimes + "3", "SOLVER.HOOKS[test/RaiseSignal].AT_POINT=checkpoint_saved"}, 75);
  for (const Job* job : {&stopped, &again}) {
    job->resume({"SOLVER.MAX_EPOCHS=2"});
    e2e::check_same_training(undisturbed, *job);
  }
}

TEST_CASE("a signal after the last save changes nothing") {
  Job job;
  const RunResult result = job.run({"SOLVER.MAX_EPOCHS=1", "SOLVER.HOOKS[test/RaiseSignal].AT_POINT=after_solve"});
  CHECK(e2e::json_value(result.last_line(), {"status"}) == "done");
}

TEST_CASE("without CheckpointHook a signal ends the program at once") {
  Job job(unsaved_job());
  for (const auto& [name, number] : {std::pair{"TERM", SIGTERM}, std::pair{"INT", SIGINT}}) {
    const RunResult result =
        e2e::run_gantry(job.command({kSignal + std::string(name), at_iteration(4)}), job.dir.path());
    INFO(result.describe());
    CHECK(result.signal == number);
    CHECK_FALSE(contains(result.err, "signals armed"));
  }
}

TEST_CASE("a run that was started to ignore SIGHUP ignores it") {
  Job job;
  const RunResult ignored =
      run_in_shell(job, "trap '' HUP; exec \"$@\"", {"SOLVER.MAX_EPOCHS=1", kSignal + "HUP", at_iteration(4)});
  INFO(ignored.describe());
  CHECK(ignored.exit_code == 0);
  Job other;
  const RunResult taken =
      run_in_shell(other, "trap '' HUP; exec \"$@\"", {"SOLVER.MAX_EPOCHS=1", kSignal + "TERM", at_iteration(4)});
  INFO(taken.describe());
  CHECK(taken.exit_code == 75);
}

TEST_CASE("a run that waits for data saves before the data comes") {
  Job job;
  const RunResult result =
      run_in_shell(job,
                   "\"$@\" & run=$!; until grep -qs '^1 ' losses.txt; do sleep 0.02; done; sleep 0.2; kill -TERM $run; "
                   "until [ -e work/checkpoints/last ]; do sleep 0.02; done; wc -l <losses.txt >at-save.txt; wait $run",
                   {kSlowData, "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=1"});
  INFO(result.describe());
  CHECK(result.exit_code == 75);
  // The third batch, which was waited for, was never trained on.
  CHECK(job.link("last") == "ldm_step-2");
  CHECK(job.losses().size() == 2);
  CHECK(result.seconds < 8);  // an epoch takes 10 s
}

TEST_CASE("a signal that comes while a window waits for data lets the window end") {
  Job job;
  const RunResult result = run_in_shell(
      job, "\"$@\" & run=$!; until grep -qs '^1 ' losses.txt; do sleep 0.02; done; kill -TERM $run; wait $run",
      {kSlowData});
  INFO(result.describe());
  CHECK(result.exit_code == 75);
  CHECK(job.link("last") == "ldm_step-3");
}

TEST_CASE("a signal that ENV.SIGNALS does not name ends the program by it") {
  Job job;
  const auto run = [&](const std::string& signal) {
    return e2e::run_gantry(job.command({"ENV.SIGNALS=[USR1, SIGINT]", kSignal + signal, at_iteration(4)}),
                           job.dir.path());
  };
  const RunResult ended = run("TERM");
  INFO(ended.describe());
  CHECK(ended.signal == SIGTERM);
  CHECK(contains(ended.err, "signals armed: SIGUSR1 and SIGINT save a checkpoint and pause the run"));
  CHECK(job.names().empty());
  for (const std::string name : {"USR1", "INT"}) {
    const RunResult paused = run(name);
    INFO(paused.describe());
    CHECK(paused.exit_code == 75);
    CHECK(contains(paused.err, "pausing: SIG" + name));
  }
}

TEST_CASE("with an empty list of signals each ends the program at once") {
  Job job;
  for (const auto& [name, number] : {std::pair{"TERM", SIGTERM}, std::pair{"INT", SIGINT}, std::pair{"HUP", SIGHUP}}) {
    const RunResult result =
        e2e::run_gantry(job.command({"ENV.SIGNALS=[]", kSignal + std::string(name), at_iteration(4)}), job.dir.path());
    INFO(result.describe());
    CHECK(result.signal == number);
    CHECK_FALSE(contains(result.err, "signals armed"));
  }
  CHECK(job.names().empty());
}

TEST_CASE("an unknown signal is refused with the place and the names that are known") {
  Job job(e2e::replaced(e2e::kJob, "SEED: 1,", "SEED: 1, SIGNALS: [TERM, SIGTREM],"));
  const RunResult result = e2e::run_gantry({"check", "job.yaml", "--plugin-dir", GANTRY_PROBE_DIR}, job.dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "job.yaml:2: SIGNALS[1] must be one of INT, TERM, HUP, USR1, USR2"));
  CHECK(contains(result.err, "'SIGTREM'; did you mean 'SIGTERM'?"));
}
