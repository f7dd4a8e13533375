#include <filesystem>

#include "hooks/odd_job.h"

// The traces that BackwardHook records, read by Python's json.

namespace {

using e2e::contains;
using e2e::Job;
using e2e::operator+;
using Names = std::vector<std::string>;

const std::string kBackward = "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, ";

std::string profile(const std::string& keys) { return kBackward + "DO_PROFILE: true, " + keys + "}]"; }

/// What read_trace.py prints: the iterations in the trace, and how many aten operators lie within them.
std::string trace(const Job& job, const std::string& file) {
  const std::string python = GANTRY_SOURCE_DIR "/.venv/bin/python";
  const std::string program = std::filesystem::exists(python) ? python : "/usr/bin/python3";
  const e2e::RunResult result =
      e2e::run_program({program, GANTRY_SOURCE_DIR "/tests/hooks/read_trace.py", job.dir.path(file)}, job.dir.path());
  INFO(result.describe());
  REQUIRE(result.exit_code == 0);
  return result.last_line();
}

}  // namespace

TEST_CASE("a profile is a Chrome trace of as many iterations as were asked for") {
  Job job(e2e::kOddJob);
  job.run({profile("PROFILE_WAIT: 1, PROFILE_WARMUP: 1, PROFILE_ACTIVE: 3")});
  CHECK(job.names("work/profile") == Names{"trace-5.json"});
  CHECK(trace(job, "work/profile/trace-5.json") == "2 3 4");
}

TEST_CASE("a profile is repeated as often as it says and goes where it says") {
  Job twice(e2e::kOddJob), always(e2e::kOddJob);
  twice.run({profile("PROFILE_WAIT: 0, PROFILE_WARMUP: 1, PROFILE_ACTIVE: 2, REPEAT: 2, PROFILE_DIR: " +
                     twice.dir.path("traces"))});
  CHECK(twice.names("traces") == Names{"trace-3.json", "trace-6.json"});
  CHECK(trace(twice, "traces/trace-6.json") == "4 5");
  CHECK_FALSE(twice.dir.has("work/profile"));
  // What the end of training cuts short is written too.
  always.run({profile("PROFILE_WAIT: 0, PROFILE_WARMUP: 0, PROFILE_ACTIVE: 4, REPEAT: 0")});
  CHECK(always.names("work/profile") == Names{"trace-12.json", "trace-14.json", "trace-4.json", "trace-8.json"});
  CHECK(trace(always, "work/profile/trace-14.json") == "12 13");
}

TEST_CASE("without DO_PROFILE no profile folder is made") {
  Job job(e2e::kOddJob);
  job.run({kBackward + "PROFILE_DIR: " + job.dir.path("traces") + "}]"});
  CHECK_FALSE(job.dir.has("work/profile"));
  CHECK_FALSE(job.dir.has("traces"));
}

TEST_CASE("a profile changes nothing in what is trained") {
  Job with(e2e::kOddJob), without(e2e::kOddJob);
  without.run({"SOLVER.ACCU_STEP=3"});
  with.run({profile("PROFILE_WAIT: 1"), "SOLVER.ACCU_STEP=3"});
  e2e::check_same_training(without, with);
  CHECK(with.names("work/profile").size() == 1);
}

TEST_CASE("a folder that cannot be made ends the run with its name") {
  Job job(e2e::kOddJob);
  job.dir.write("taken", "a file");
  const e2e::RunResult result = job.run({profile("PROFILE_DIR: " + job.dir.path("taken/inside"))}, 1);
  CHECK(contains(result.err, "cannot make the folder " + job.dir.path("taken/inside")));
}

TEST_CASE("both names of the number of batches to a step mean the same and must agree") {
  Job one(e2e::kOddJob), other(e2e::kOddJob);
  one.run({"SOLVER.ACCU_STEP=3"});
  other.run({kBackward + "ACCUMULATE_STEP: 3}]"});
  CHECK(one.lines("digest.txt").size() == 6);
  CHECK(one.lines("digest.txt") == other.lines("digest.txt"));
  Job both(e2e::kOddJob);
  const e2e::RunResult result = both.run({kBackward + "ACCUMULATE_STEP: 2}]", "SOLVER.ACCU_STEP=3"}, 2);
  CHECK(contains(result.err, "ACCU_STEP is 3"));
  CHECK(contains(result.err, "is 2"));
}
