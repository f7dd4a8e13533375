#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "e2e/resume.h"

// One WORK_DIR and the runs that come to it.

namespace {

using e2e::at_iteration;
using e2e::Job;
using e2e::RunResult;
using Names = std::vector<std::string>;

const std::string kOneEpoch = "SOLVER.MAX_EPOCHS=1";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int64_t occurrences(const std::string& text, const std::string& part) {
  int64_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a rerun in a used folder moves the earlier results away and says so in one line") {
  Job job;
  job.run({kOneEpoch});
  CHECK(job.names("work") == Names{".gantry", "checkpoints", "config.yaml", "log.txt"});
  const std::string model = job.dir.read("work/checkpoints/ldm_step-10/model.safetensors");
  const std::string log = job.dir.read("work/log.txt");

  const RunResult second = job.run({kOneEpoch, "ENV.SEED=2"});
  CHECK(occurrences(second.err, "old-1") == 1);
  CHECK(contains(second.err, "old-1 (checkpoints, config.yaml, log.txt)"));
  CHECK(job.names("work") == Names{".gantry", "checkpoints", "config.yaml", "log.txt", "old-1"});
  CHECK(job.names("work/old-1") == Names{"checkpoints", "config.yaml", "log.txt"});
  CHECK(job.dir.read("work/old-1/checkpoints/ldm_step-10/model.safetensors") == model);
  CHECK(job.dir.read("work/old-1/log.txt") == log);
  CHECK(job.dir.read("work/checkpoints/ldm_step-10/model.safetensors") != model);

  // One that is resumed by auto where nothing has been saved is a rerun as well.
  std::filesystem::remove_all(job.work("checkpoints"));
  CHECK(contains(job.resume({kOneEpoch}).err, "old-2 (config.yaml, log.txt)"));
  // And one that goes on moves nothing.
  CHECK_FALSE(contains(job.resume({"SOLVER.MAX_EPOCHS=2"}).err, "old-"));
  CHECK(job.names("work") == Names{".gantry", "checkpoints", "config.yaml", "log.txt", "old-1", "old-2"});
}

TEST_CASE("a rerun leaves what the configuration names and what was there before the first run") {
  Job job;
  job.dir.write("work/notes.txt", "mine");
  job.dir.write("work/data/images.bin", "mine");
  job.dir.write("work/job.yaml", job.dir.read("job.yaml"));
  std::vector<std::string> arguments = job.command({kOneEpoch});
  arguments[1] = "work/job.yaml";
  const auto run = [&](const std::string& more) {
    std::vector<std::string> command = arguments;
    if (!more.empty()) command.push_back(more);
    const RunResult result = e2e::run_gantry(command, job.dir.path());
    INFO(result.describe());
    REQUIRE(result.exit_code == 0);
    return result;
  };
  run("");
  // These come between the runs; the configuration names the first two, one beside itself and one from here.
  job.dir.write("work/losses.txt", "mine\n");
  job.dir.write("work/later/trace.txt", "mine\n");
  job.dir.write("work/stray.txt", "nobody's");
  job.dir.write("work/linked/images.bin", "mine");  // named through a link that lies elsewhere
  std::filesystem::create_directory_symlink("work/linked", job.dir.path("elsewhere"));
  const std::string counts = job.dir.read("counts.txt");
  arguments.push_back("SOLVER.HOOKS[test/Trace].LABEL=elsewhere/images.bin");
  const RunResult again = run("SOLVER.HOOKS[test/Trace].FILE=work/later/trace.txt");
  CHECK(contains(again.err, "old-1 (checkpoints, config.yaml, log.txt, stray.txt)"));
  CHECK(job.names("work") == Names{".gantry", "checkpoints", "config.yaml", "data", "job.yaml", "later", "linked",
                                   "log.txt", "losses.txt", "notes.txt", "old-1"});
  CHECK(job.dir.read("work/losses.txt") == "mine\n");
  CHECK(job.dir.read("counts.txt") == counts);
}

TEST_CASE("a run that goes on from an older checkpoint by path moves the newer ones away") {
  Job undisturbed, job;
  undisturbed.run({"SOLVER.MAX_EPOCHS=3"});
  job.run({"SOLVER.MAX_EPOCHS=3"});
  const std::string model = job.dir.read("work/checkpoints/ldm_step-30/model.safetensors");
  const std::string from = "SOLVER.RESUME_FROM=work/checkpoints/ldm_step-10";
  const RunResult result = job.run({"SOLVER.MAX_EPOCHS=2", from});
  CHECK(contains(result.err, "old-1/checkpoints (ldm_step-20, ldm_step-30)"));
  CHECK(job.names() == Names{"best", "last", "ldm_step-10", "ldm_step-20"});
  CHECK(job.names("work/old-1/checkpoints") == Names{"ldm_step-20", "ldm_step-30"});
  CHECK(job.dir.read("work/old-1/checkpoints/ldm_step-30/model.safetensors") == model);
  CHECK(job.link("last") == "ldm_step-20");
  job.resume({"SOLVER.MAX_EPOCHS=3"});
  CHECK(e2e::checkpoint_difference(undisturbed.checkpoint(20), job.work("old-1/checkpoints/ldm_step-20")) == "");
}

TEST_CASE("a link names a checkpoint as well as its own name does") {
  Job job;
  job.run({"SOLVER.MAX_EPOCHS=2"});
  const RunResult result = job.run({"SOLVER.MAX_EPOCHS=3", "SOLVER.RESUME_FROM=work/checkpoints/last"});
  CHECK(contains(result.err, "goes on from " + job.checkpoint(20)));
  CHECK(job.link("last") == "ldm_step-30");
}

TEST_CASE("a second run in a folder that is in use is refused and harms nothing") {
  Job undisturbed, job;
  undisturbed.run({kOneEpoch});
  // The first takes half a second before it ends.
  const std::string waits = "SOLVER.EVAL_DATA={NAME: test/SlowImages, SIZE: 4, MS: 500, BATCH_SIZE: 1, NUM_WORKERS: 0}";
  std::future<RunResult> first = std::async(std::launch::async, [&] {
    return e2e::run_gantry(job.command({"SOLVER.MAX_EPOCHS=1", waits}), job.dir.path());
  });
  while (!job.dir.has("losses.txt") || job.lines("losses.txt").size() < 10)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (const char* resume : {"SOLVER.RESUME_FROM=auto", "SOLVER.RESUME_FROM=null"}) {
    const RunResult second = job.run({kOneEpoch, resume, "SOLVER.HOOKS=[]"}, 2);
    CHECK(contains(second.err, job.work("").substr(0, job.work("").size() - 1) + " is in use by process "));
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    CHECK(contains(second.err, std::string(" on ") + host));
  }
  const RunResult result = first.get();
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(job.names("work") == Names{".gantry", "checkpoints", "config.yaml", "log.txt"});
  CHECK(job.losses() == undisturbed.losses());
  // It said who it was: a process of its own.
  CHECK(job.dir.read("work/.gantry/lock") == "");
}

TEST_CASE("the lock of a run that was killed keeps nobody out") {
  Job undisturbed, job;
  undisturbed.run({"SOLVER.MAX_EPOCHS=2"});
  const RunResult killed = e2e::run_gantry(
      job.command({"SOLVER.MAX_EPOCHS=2", "SOLVER.HOOKS[test/RaiseSignal].SIGNAL=KILL", at_iteration(13)}),
      job.dir.path());
  REQUIRE(killed.signal == SIGKILL);
  CHECK(contains(job.dir.read("work/.gantry/lock"), "process "));
  const RunResult next = job.resume({"SOLVER.MAX_EPOCHS=2"});
  CHECK(contains(next.err, "did not end in order"));
  e2e::check_same_training(undisturbed, job);
}
