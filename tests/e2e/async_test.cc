#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "e2e/faults.h"

// Checkpoints that a thread writes while training goes on.

namespace {

using e2e::at_iteration;
using e2e::Call;
using e2e::FaultyRun;
using e2e::Job;
using e2e::RunResult;
using Names = std::vector<std::string>;

const std::string kHook = "SOLVER.HOOKS[CheckpointHook].";
const std::string kAsync = kHook + "ASYNC=true";
/// Two epochs of ten iterations, a save after each fifth.
const std::vector<std::string> kOften = {"SOLVER.MAX_EPOCHS=2", "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=1",
                                         kHook + "INTERVAL=5 iters"};

std::vector<std::string> operator+(std::vector<std::string> changes, const std::string& more) {
  changes.push_back(more);
  return changes;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Every checkpoint that one of the two has: the same files in all bytes, saved at the same place for the same reason.
void check_same_checkpoints(const Job& synchronous, const Job& background) {
  REQUIRE(background.names() == synchronous.names());
  e2e::check_same_training(synchronous, background);
  e2e::check_same_counts(synchronous, background);
  for (const std::string& name : synchronous.names()) {
    const std::string file = "work/checkpoints/" + name + "/checkpoint.json";
    for (const char* key : {"iteration", "epoch", "phase", "why", "files"}) {
      INFO(name << " " << key);
      const auto expected = e2e::json_value(synchronous.dir.read(file), {key});
      CHECK(expected.has_value());
      CHECK(e2e::json_value(background.dir.read(file), {key}) == expected);
    }
  }
}

/// How a run's saves stand to each other and to training, by the order of its calls.
struct Overlap {
  std::size_t saves = 0;              ///< begun
  std::size_t most_at_once = 0;       ///< begun and not yet published
  std::size_t trained_meanwhile = 0;  ///< iterations that ended while a save was under way

  explicit Overlap(const std::vector<Call>& calls) {
    std::set<std::string> open;
    for (const Call& call : calls) {
      if (call.is("mkdir", "checkpoints/.tmp-ldm_step-")) {
        ++saves;
        open.insert(call.path);
        most_at_once = std::max(most_at_once, open.size());
      }
      if (call.is("rename", "checkpoints/.tmp-ldm_step-")) open.erase(call.path);
      if (call.is("write", "losses.txt")) trained_meanwhile += open.size();
    }
  }
};

/// Of the process's main thread, among the calls that write a checkpoint's files.
int64_t writes_of_main_thread(const FaultyRun& run) {
  return std::count_if(run.calls.begin(), run.calls.end(), [](const Call& call) {
    return call.main_thread && call.is("write", ".safetensors") && call.is("write", "/checkpoints/");
  });
}

}  // namespace

TEST_CASE("checkpoints written in the background are those of a run that waits for them") {
  const Job synchronous, background;
  const FaultyRun waits(synchronous, "", kOften), goes_on(background, "", kOften + kAsync);
  INFO(goes_on.result.describe());
  REQUIRE(waits.result.exit_code == 0);
  REQUIRE(goes_on.result.exit_code == 0);
  CHECK(Overlap(goes_on.calls).saves >= 4);
  CHECK(writes_of_main_thread(goes_on) == 0);
  CHECK(writes_of_main_thread(waits) > 0);
  check_same_checkpoints(synchronous, background);
  CHECK(e2e::json_value(goes_on.result.last_line(), {"checkpoint"}) == background.checkpoint(20));
}

TEST_CASE("checkpoints written in the background are kept and linked as those of a run that waits for them") {
  // The best is the second of six; the third is not kept.
  const std::vector<std::string> changes = {"SOLVER.MAX_EPOCHS=6", "SOLVER.LIMIT_TRAIN_BATCHES=2",
                                            "SOLVER.METRICS=[{NAME: test/ListedMetric, VALUES: [1, 9, 2, 3, 4, 5]}]",
                                            kHook + "SAVE_BEST_BY=listed", kHook + "KEEP_LAST=2"};
  for (const std::string slow : {"", "fsync model.safetensors 1 * sleep:60"}) {
    INFO(slow);
    const Job synchronous, background;
    synchronous.run(changes);
    const FaultyRun run(background, slow, changes + kAsync);
    INFO(run.result.describe());
    REQUIRE(run.result.exit_code == 0);
    CHECK(background.names() == Names{"best", "last", "ldm_step-10", "ldm_step-12", "ldm_step-4"});
    CHECK(background.link("best") == "ldm_step-4");
    CHECK(background.link("last") == "ldm_step-12");
    check_same_checkpoints(synchronous, background);
  }
}

TEST_CASE("a background save that ends within an evaluation is not taken for that of the best after it") {
  // After iterations 10 and 20 there are two saves: the interval's, and the best's once the evaluation is done.
  const std::vector<std::string> slow_evaluation =
      kOften + "SOLVER.EVAL_DATA={NAME: test/SlowImages, SIZE: 6, MS: 40, BATCH_SIZE: 2, NUM_WORKERS: 0}";
  const Job synchronous, background;
  synchronous.run(slow_evaluation);
  const FaultyRun run(background, "fsync model.safetensors 1 * sleep:60", slow_evaluation + kAsync);
  INFO(run.result.describe());
  REQUIRE(run.result.exit_code == 0);
  check_same_checkpoints(synchronous, background);
}

TEST_CASE("training goes on while a slow disk takes a checkpoint and a save waits for the one before") {
  // About 15 ms for an iteration and 150 ms for a save.
  const std::vector<std::string> changes =
      kOften + "SOLVER.TRAIN_DATA={NAME: test/SlowImages, SIZE: 66, MS: 2, BATCH_SIZE: 7, NUM_WORKERS: 0}";
  const Job undisturbed, waits, goes_on;
  undisturbed.run(changes);
  const std::string slow = "fsync optimizer.safetensors 1 * sleep:150";
  const FaultyRun synchronous(waits, slow, changes), background(goes_on, slow, changes + kAsync);
  INFO(background.result.describe());
  REQUIRE(background.result.exit_code == 0);
  const Overlap apart(synchronous.calls), together(background.calls);
  CHECK(apart.trained_meanwhile == 0);
  CHECK(together.trained_meanwhile >= 4);
  CHECK(together.saves == apart.saves);
  CHECK(together.most_at_once == 1);
  check_same_checkpoints(undisturbed, goes_on);
}

TEST_CASE("a background save that fails ends the run at the next save point and names the file") {
  Job undisturbed;
  undisturbed.run(kOften);
  for (const auto& [rule, reason] : {std::pair{"fsync optimizer.safetensors 2 * EIO", "Input/output error"},
                                     std::pair{"write optimizer.safetensors 12 * ENOSPC", "No space left on device"}}) {
    INFO(std::string(rule));
    const Job job;
    const FaultyRun failed(job, rule, kOften + kAsync);
    INFO(failed.result.describe());
    CHECK(failed.result.exit_code == 1);
    CHECK(contains(failed.result.err, "cannot save the checkpoint ldm_step-10: cannot write "));
    CHECK(contains(failed.result.err, "optimizer.safetensors"));
    CHECK(contains(failed.result.err, reason));
    CHECK(e2e::json_value(failed.result.last_line(), {"status"}) == "failed");
    // The next save, at the latest, found out.
    CHECK(job.losses().size() >= 10);
    CHECK(job.losses().size() <= 15);
    CHECK(job.names() == Names{"last", "ldm_step-5"});
    const RunResult resumed = job.resume(kOften + kAsync);
    CHECK(contains(resumed.err, "goes on from " + job.checkpoint(5)));
    check_same_checkpoints(undisturbed, job);
  }
}

TEST_CASE("a background save that fails at the end of the run or for a pause is no success") {
  struct Case {
    const char* rule;
    std::string more;
  };
  for (const Case& c : {Case{"fsync state.safetensors 4 * EIO", "SOLVER.EVAL_DATA=null"},
                        Case{"fsync state.safetensors 2 * EIO", at_iteration(6)}}) {
    INFO(std::string(c.rule));
    const Job job;
    const FaultyRun failed(job, c.rule, kOften + kAsync + c.more);
    INFO(failed.result.describe());
    CHECK(failed.result.exit_code == 1);
    CHECK(contains(failed.result.err, "state.safetensors"));
    CHECK(contains(failed.result.err, "Input/output error"));
    for (const std::string& name : job.names()) CHECK_FALSE(name.starts_with("."));
  }
}

TEST_CASE("SIGTERM waits for the background save and leaves a whole checkpoint") {
  Job undisturbed;
  undisturbed.run(kOften);
  // In the iteration after a save has begun, and in one that saves by itself.
  for (const int64_t iteration : {5, 9}) {
    INFO(iteration);
    const Job job;
    const FaultyRun paused(job, "fsync model.safetensors 1 * sleep:200", kOften + kAsync + at_iteration(iteration));
    INFO(paused.result.describe());
    CHECK(paused.result.exit_code == 75);
    const std::string newest = job.checkpoint(iteration + 1);
    CHECK(job.link("last") == "ldm_step-" + std::to_string(iteration + 1));
    CHECK(e2e::json_value(paused.result.last_line(), {"checkpoint"}) == newest);
    CHECK(e2e::run_gantry({"inspect", newest}, job.dir.path()).exit_code == 0);
    CHECK(Overlap(paused.calls).most_at_once == 1);
    job.resume(kOften + kAsync);
    e2e::check_same_training(undisturbed, job);
    e2e::check_same_counts(undisturbed, job);
  }
}

TEST_CASE("a run that goes on from a background save ends in the same bytes wherever it was stopped") {
  Job undisturbed;
  undisturbed.run(kOften);
  for (const std::string point : {"train.before_epoch", "train.after_iter", "train.after_all_iter", "eval.after_iter",
                                  "eval.evaluated", "train.after_epoch", "checkpoint_saved"}) {
    INFO(point);
    const Job job;
    std::vector<std::string> changes = kOften + kAsync;
    for (const std::string& change : e2e::at_point(point, 1)) changes.push_back(change);
    job.run(changes, 75);
    job.resume(kOften + kAsync);
    e2e::check_same_training(undisturbed, job);
    e2e::check_same_counts(undisturbed, job);
  }
}
