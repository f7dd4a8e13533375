#include <algorithm>
#include <set>

#include "e2e/faults.h"
#include "regress/trials.h"

// Checkpoints that were removed and should not have been, and a best that was none.

namespace {

using namespace trials;
using e2e::at_point;
using e2e::Job;
using Names = std::vector<std::string>;

/// One iteration an epoch, and an evaluation after each with the next of these figures.
Changes figures(const std::string& values, int epochs) {
  return {"SOLVER.LIMIT_TRAIN_BATCHES=1", "SOLVER.METRICS=[{NAME: test/ListedMetric, VALUES: [" + values + "]}]",
          "SOLVER.MAX_EPOCHS=" + std::to_string(epochs), kCheckpoint + "SAVE_BEST_BY=listed"};
}

}  // namespace

TEST_CASE("after a resume a better figure takes the place of the best and the one before goes") {
  const Changes changes = figures("1, 5, 3, 7, 2", 5) + Changes{kCheckpoint + "KEEP_LAST=1"};
  Job undisturbed, stopped;
  undisturbed.run(changes);
  run_with_stops(stopped, changes, {at_point("train.after_epoch", 3)});
  CHECK(stopped.link("best") == "ldm_step-4");
  CHECK(stopped.names() == Names{"best", "last", "ldm_step-4", "ldm_step-5"});
  CHECK(stopped.names() == undisturbed.names());
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("a new run in the folder of a longer one keeps its own checkpoints and the longer one's") {
  const Changes changes = {kCheckpoint + "KEEP_LAST=1", kCheckpoint + "SAVE_BEST=false"};
  Job job;
  job.run(changes + Changes{"SOLVER.MAX_EPOCHS=3"});
  CHECK(job.names() == Names{"last", "ldm_step-30"});
  job.run(changes + Changes{"SOLVER.MAX_EPOCHS=1"});
  CHECK(job.names() == Names{"last", "ldm_step-10"});
  CHECK(job.link("last") == "ldm_step-10");
  CHECK(job.names("work/old-1/checkpoints") == Names{"last", "ldm_step-30"});
}

TEST_CASE("no save leaves more checkpoints than KEEP_LAST and the best and zero of them is refused") {
  Job job;
  const Changes changes = figures("1, 9, 2, 3, 4, 5", 6);
  const e2e::FaultyRun run(job, "", changes + Changes{kCheckpoint + "KEEP_LAST=2"});
  REQUIRE(run.result.exit_code == 0);
  std::set<std::string> there;
  int saves = 0;
  for (const e2e::Call& call : run.calls) {
    if (call.is("mkdir", "checkpoints/.tmp-ldm_step-")) {  // the next save begins
      ++saves;
      CHECK(there.size() <= 3);
    }
    if (call.name != "rename") continue;
    if (contains(call.to, "/checkpoints/ldm_step-")) there.insert(call.to);
    if (contains(call.path, "/checkpoints/ldm_step-")) there.erase(call.path);
  }
  CHECK(saves == 6);
  CHECK(there.size() == 3);
  CHECK(job.names() == Names{"best", "last", "ldm_step-2", "ldm_step-5", "ldm_step-6"});

  const e2e::RunResult refused = Job().run(changes + Changes{kCheckpoint + "KEEP_LAST=0"}, 2);
  CHECK(contains(refused.err, "KEEP_LAST"));
}
