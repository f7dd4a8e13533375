#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "e2e/resume.h"

// A save for which there is no room.

namespace {

using e2e::Job;
using e2e::RunResult;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// About 400 kB of parameters and as much momentum.
const std::vector<std::string> kLarge = {"SOLVER.MODEL.BACKBONE.CHANNELS=2000", "SOLVER.MAX_EPOCHS=2",
                                         "SOLVER.HOOKS[CheckpointHook].INTERVAL=3 iters"};

RunResult run_script(const Job& job, const std::vector<std::string>& shell, const std::string& script,
                     std::vector<std::string> changes) {
  std::vector<std::string> command = shell;
  command.insert(command.end(), {"/bin/bash", "-c", script, "bash", GANTRY_BINARY});
  const std::vector<std::string> arguments = job.command(changes);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return e2e::run_program(command, job.dir.path());
}

std::vector<std::string> with(std::vector<std::string> changes, const std::string& one) {
  changes.push_back(one);
  return changes;
}

/// What must be true of the failed run, whose output went to failed.txt, and of the one after it.
void check_failed_and_finished(const Job& undisturbed, const Job& job) {
  const std::string error = job.dir.read("failed.txt");
  INFO(error);
  CHECK(job.dir.read("failed-exit.txt") == "1\n");
  CHECK(contains(error, "cannot save the checkpoint ldm_step-"));
  CHECK(contains(error, ".safetensors"));
  CHECK(contains(error, "\"status\": \"failed\""));
  CHECK_FALSE(contains(job.dir.read("after-failure.txt"), ".tmp-"));
  CHECK(job.dir.read("resumed-exit.txt") == "0\n");
  CHECK(job.losses() == undisturbed.losses());
}

}  // namespace

TEST_CASE("a save on a full disk fails with the file and the reason and the run goes on once there is room") {
  Job undisturbed, job;
  if (geteuid() != 0 ||
      e2e::run_program({"/usr/bin/unshare", "-m", "/bin/mount", "-t", "tmpfs", "tmpfs", "/mnt"}, job.dir.path())
              .exit_code != 0) {
    MESSAGE("skipped: only root may mount a small file system");
    return;
  }
  undisturbed.run(kLarge);
  // Room for one checkpoint and a half; a left-over of a process that was killed before takes some of it.
  const RunResult result = run_script(
      job, {"/usr/bin/unshare", "-m"},
      "mkdir work && mount -t tmpfs -o size=3m tmpfs work && mkdir -p work/checkpoints/.tmp-ldm_step-3-1 && "
      "\"$@\" >failed.txt 2>&1; echo $? >failed-exit.txt; ls -A work/checkpoints >after-failure.txt; "
      "mkdir -p work/checkpoints/.tmp-ldm_step-6-99; head -c 1000 /dev/zero >work/checkpoints/.tmp-ldm_step-6-99/x; "
      "mount -o remount,size=100m work && \"$@\" >resumed.txt 2>&1; echo $? >resumed-exit.txt; "
      "cp -a work kept",
      with(kLarge, "SOLVER.RESUME_FROM=auto"));
  INFO(result.describe());
  check_failed_and_finished(undisturbed, job);
  CHECK(contains(job.dir.read("failed.txt"), "No space left on device"));
  CHECK(contains(job.dir.read("after-failure.txt"), "ldm_step-3\n"));
  CHECK(contains(job.dir.read("resumed.txt"), "goes on from"));
  for (const std::string& name : job.names("kept/checkpoints")) CHECK_FALSE(name.starts_with("."));
  CHECK(e2e::checkpoint_difference(undisturbed.checkpoint(20), job.dir.path("kept/checkpoints/ldm_step-20")) == "");
}

TEST_CASE("a save that is cut short fails with the file and the reason and the run goes on from before") {
  Job undisturbed, job;
  undisturbed.run(kLarge);
  const RunResult result =
      run_script(job, {},
                 // The first checkpoint, without a limit on the size of files.
                 "\"$@\" 'SOLVER.HOOKS[test/RaiseSignal].AT_ITERATION=2' >first.txt 2>&1; "
                 "(trap '' XFSZ; ulimit -f 100; \"$@\" >failed.txt 2>&1; echo $? >failed-exit.txt); "
                 "ls -A work/checkpoints >after-failure.txt; \"$@\" >resumed.txt 2>&1; echo $? >resumed-exit.txt",
                 with(kLarge, "SOLVER.RESUME_FROM=auto"));
  INFO(result.describe());
  check_failed_and_finished(undisturbed, job);
  CHECK(contains(job.dir.read("failed.txt"), "File too large"));
  CHECK(contains(job.dir.read("after-failure.txt"), "ldm_step-3\n"));
  CHECK(contains(job.dir.read("resumed.txt"), "goes on from " + job.checkpoint(3)));
  e2e::check_same_training(undisturbed, job);
}
