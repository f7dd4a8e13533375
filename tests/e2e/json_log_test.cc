#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/recorders.h"

// JsonLogHook. That its values are right is tested beside TensorBoard's.

namespace {

using e2e::at_iteration;
using e2e::contains;
using e2e::Job;

const std::string kHook = "    - {NAME: JsonLogHook, LOG_INTERVAL: 5}\n";

}  // namespace

TEST_CASE("metrics.jsonl has a line every LOG_INTERVAL iterations and for each phase") {
  const Job job(e2e::recorded_job(kHook));
  const e2e::RunResult run = job.run({"SOLVER.MAX_EPOCHS=2"});
  const std::vector<std::string> lines = job.lines("work/metrics.jsonl");
  // Per epoch two lines of 5, the evaluation's and the epoch's; and one after 5 of the 6 iterations of evaluations.
  REQUIRE(lines.size() == 2 * 4 + 1);
  CHECK(
      lines[1].starts_with("{\"mode\": \"train\", \"line\": \"iter\", \"epoch\": 1, \"iter\": 10, \"iteration\": 10, "
                           "\"step\": 10, \"loss\": "));
  CHECK(
      lines[2].starts_with("{\"mode\": \"eval\", \"line\": \"epoch\", \"epoch\": 1, \"iter\": 3, \"iteration\": 10, "));
  CHECK(lines[3].starts_with(
      "{\"mode\": \"train\", \"line\": \"epoch\", \"epoch\": 1, \"iter\": 10, \"iteration\": 10, "));
  CHECK(
      lines[6].starts_with("{\"mode\": \"eval\", \"line\": \"iter\", \"epoch\": 2, \"iter\": 2, \"iteration\": 20, "));
  CHECK(e2e::json_value(lines[1], {"every"}) == "7.0");     // of 5 6 7 8 9
  CHECK(e2e::json_value(lines[1], {"second"}) == "7.0");    // of 5 7 9
  CHECK(e2e::json_value(lines[0], {"second"}) == "2.0");    // of 1 3
  CHECK(e2e::json_value(lines[1], {"nothing"}) == "null");  // NaN
  CHECK(e2e::json_value(lines[1], {"lr"}).has_value());
  for (const char* metric : {"loss", "acc@1"})
    CHECK(e2e::json_number(lines[7], {metric}) == e2e::json_number(run.last_line(), {"metrics", "eval", metric}));
}

TEST_CASE("lines of a killed run after its checkpoint are cut and written again the same") {
  const std::string config = e2e::recorded_job(kHook);
  const Job undisturbed(config), killed(config);
  undisturbed.run();
  e2e::run_until_killed(killed, 17);
  e2e::append(killed, "work/metrics.jsonl", "{\"mode\": \"tr");
  CHECK(contains(killed.dir.read("work/metrics.jsonl"), "\"iteration\": 15, "));
  killed.resume({at_iteration(12)}, 75);
  const std::string within = killed.dir.read("work/metrics.jsonl");
  CHECK_FALSE(contains(within, "\"iteration\": 15, "));
  CHECK(within.ends_with("}\n"));
  killed.resume();
  CHECK(killed.lines("work/metrics.jsonl") == undisturbed.lines("work/metrics.jsonl"));
}

TEST_CASE("metrics.jsonl of a training that starts afresh holds its lines alone") {
  const Job job(e2e::recorded_job("    - {NAME: JsonLogHook, FILE: ../kept.jsonl, LOG_INTERVAL: 0}\n"));
  job.run({"SOLVER.MAX_EPOCHS=1"});
  const std::string first = job.dir.read("kept.jsonl");
  job.run({"SOLVER.MAX_EPOCHS=2"});
  CHECK(job.dir.read("kept.jsonl.old-1") == first);
  CHECK(job.lines("kept.jsonl").size() == 4);
  // A checkpoint that was saved without the hook knows of no lines.
  const Job without(e2e::recorded_job(""));
  without.run({at_iteration(12)}, 75);
  without.dir.write("job.yaml", e2e::recorded_job(kHook));
  without.resume();
  CHECK(contains(without.lines("work/metrics.jsonl").front(), "\"iteration\": 15, "));
}

TEST_CASE("what JsonLogHook cannot write to is named") {
  const Job job(e2e::recorded_job(kHook));
  const std::string file = "SOLVER.HOOKS[JsonLogHook].FILE=";
  CHECK(contains(job.run({file + "folder/"}, 2).err, "FILE must name a file, not a folder: folder/"));
  CHECK(contains(job.run({file + "http://host/x"}, 2).err, "FILE must be a file on this machine"));
  job.dir.write("folder/x", "");
  CHECK(contains(job.run({file + "../folder"}, 1).err, "/folder"));
}
