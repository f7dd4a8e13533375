#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "e2e/resume.h"

// Which checkpoint is the best, and which are kept.

namespace {

using e2e::Job;
using e2e::RunResult;
using Names = std::vector<std::string>;

const std::string kHook = "SOLVER.HOOKS[CheckpointHook].";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// One iteration per epoch, and an evaluation after each with the next of these figures.
std::vector<std::string> figures(const std::string& values, int epochs, const std::string& by) {
  return {"SOLVER.LIMIT_TRAIN_BATCHES=1", "SOLVER.METRICS=[{NAME: test/ListedMetric, VALUES: [" + values + "]}]",
          "SOLVER.MAX_EPOCHS=" + std::to_string(epochs), kHook + "SAVE_BEST_BY=" + by};
}

}  // namespace

TEST_CASE("the best is found among negative figures and never is NaN") {
  struct Case {
    const char *values, *by, *best;
    double value;
  };
  const std::vector<Case> cases = {
      {"-5, -3, -4", "+listed", "ldm_step-2", -3},     {"-5, -3, -4", "-listed", "ldm_step-1", -5},
      {"-5, -3, -3", "listed", "ldm_step-2", -3},      {"nan, 0.9, 0.8", "-listed", "ldm_step-3", 0.8},
      {"nan, 0.9, 0.8", "+listed", "ldm_step-2", 0.9}, {"0.5, nan, 0.1", "+listed", "ldm_step-1", 0.5},
  };
  for (const Case& c : cases) {
    INFO(c.values << " by " << c.by);
    Job job;
    const RunResult result = job.run(figures(c.values, 3, c.by));
    CHECK(job.link("best") == c.best);
    CHECK(e2e::json_number(result.last_line(), {"best", "listed"}) == c.value);
  }
}

TEST_CASE("where every figure is NaN there is no best and a warning says so") {
  Job job;
  const RunResult result = job.run(figures("nan", 2, "+listed"));
  CHECK(contains(result.err, "SAVE_BEST_BY listed was NaN in every evaluation"));
  CHECK(job.names() == Names{"last", "ldm_step-1", "ldm_step-2"});
}

TEST_CASE("a figure that the evaluation does not have ends the run with those that it has") {
  Job job;
  const RunResult result = job.run(figures("1", 2, "+listd"), 1);
  CHECK(contains(result.err, "SAVE_BEST_BY is 'listd', which the evaluation does not have; did you mean 'listed'?"));
  CHECK(contains(result.err, "It has: loss, listed"));
}

TEST_CASE("the best survives a resume and a worse figure after it") {
  Job job;
  std::vector<std::string> stop = figures("1, 5, 3, 4", 4, "+listed");
  for (const std::string& change : e2e::at_point("eval.evaluated", 2)) stop.push_back(change);
  stop.push_back(kHook + "KEEP_LAST=1");
  job.run(stop, 75);
  CHECK(job.link("best") == "ldm_step-2");
  std::vector<std::string> four = figures("1, 5, 3, 4", 4, "+listed");
  four.push_back(kHook + "KEEP_LAST=1");
  const RunResult result = job.resume(four);
  CHECK(job.link("best") == "ldm_step-2");
  CHECK(job.names() == Names{"best", "last", "ldm_step-2", "ldm_step-4"});
  CHECK(e2e::json_number(result.last_line(), {"best", "listed"}) == 5);
  // Its bytes are those of a run that did not stop.
  Job undisturbed;
  undisturbed.run(four);
  CHECK(undisturbed.names() == job.names());
  e2e::check_same_training(undisturbed, job);
}

TEST_CASE("the best is saved also where the interval saves nothing") {
  Job job;
  std::vector<std::string> changes = figures("1, 3, 2", 3, "+listed");
  changes.insert(changes.end(), {kHook + "INTERVAL=-1", kHook + "SAVE_LAST=false"});
  job.run(changes);
  CHECK(job.names() == Names{"best", "last", "ldm_step-1", "ldm_step-2"});
  CHECK(job.link("best") == "ldm_step-2");

  // Stopped right after the evaluation that is the best: the same.
  Job stopped;
  std::vector<std::string> stop = changes;
  for (const std::string& change : e2e::at_point("eval.evaluated", 2)) stop.push_back(change);
  stopped.run(stop, 75);
  stopped.resume(changes);
  CHECK(stopped.names() == job.names());
  e2e::check_same_training(job, stopped);
}

TEST_CASE("a kill between a checkpoint and its links leaves neither wrong nor one too many") {
  const std::vector<std::string> changes = figures("1, 5", 2, "+listed");
  std::vector<std::string> kept = changes;
  kept.push_back(kHook + "KEEP_LAST=1");
  Job undisturbed, killed;
  undisturbed.run(kept);
  std::vector<std::string> kill = kept;
  for (const std::string& change : e2e::at_point("checkpoint_saved", 2)) kill.push_back(change);
  kill.push_back("SOLVER.HOOKS[test/RaiseSignal].SIGNAL=KILL");
  const RunResult result = e2e::run_gantry(killed.command(kill), killed.dir.path());
  REQUIRE(result.signal == SIGKILL);
  CHECK(killed.names() == Names{"best", "last", "ldm_step-1", "ldm_step-2"});
  CHECK(killed.link("last") == "ldm_step-1");
  killed.resume(kept);
  CHECK(killed.names() == Names{"best", "last", "ldm_step-2"});
  e2e::check_same_training(undisturbed, killed);
}

TEST_CASE("KEEP_LAST counts iterations as numbers and not as text") {
  // Ten thousand tiny iterations.
  Job job;
  job.run({"SOLVER.TRAIN_DATA={NAME: test/Points, SIZE: 100, BATCH_SIZE: 1, NUM_WORKERS: 0}", "SOLVER.EVAL_DATA=null",
           "SOLVER.MODEL={NAME: test/Regression}", "SOLVER.METRICS=[]", "SOLVER.MAX_EPOCHS=100",
           "SOLVER.OPTIMIZER.LEARNING_RATE=0.001", "SOLVER.HOOKS=[{NAME: CheckpointHook, INTERVAL: 100 iters}]",
           kHook + "SAVE_BEST=false", kHook + "KEEP_LAST=1", kHook + "INTERVAL=4950 iters", kHook + "SAVE_LAST=true"});
  CHECK(job.names() == Names{"last", "ldm_step-10000"});
  CHECK(job.link("last") == "ldm_step-10000");
}

TEST_CASE("KEEP_LAST keeps as many as it says and the best") {
  Job job;
  std::vector<std::string> changes = figures("1, 9, 2, 3, 4, 5, 6, 7, 7, 8, 1, 1", 12, "+listed");
  changes.push_back(kHook + "KEEP_LAST=3");
  job.run(changes);
  CHECK(job.names() == Names{"best", "last", "ldm_step-10", "ldm_step-11", "ldm_step-12", "ldm_step-2"});
  // And a resumed run counts those that are there already.
  changes[2] = "SOLVER.MAX_EPOCHS=13";
  job.resume(changes);
  CHECK(job.names() == Names{"best", "last", "ldm_step-11", "ldm_step-12", "ldm_step-13", "ldm_step-2"});
}
