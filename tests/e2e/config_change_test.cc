#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "e2e/resume.h"

// Settings that are others than when the checkpoint was saved.

namespace {

using e2e::at_iteration;
using e2e::Job;
using e2e::RunResult;

const std::string kRate = "SOLVER.OPTIMIZER.LEARNING_RATE=";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Every file below a folder with its content, links with where they lead.
std::map<std::string, std::string> content(const Job& job, const std::string& folder) {
  std::map<std::string, std::string> all;
  namespace fs = std::filesystem;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(job.dir.path(folder))) {
    const std::string name = entry.path().lexically_relative(job.dir.path()).string();
    all[name] = entry.is_symlink()        ? "link to " + fs::read_symlink(entry.path()).string()
                : entry.is_regular_file() ? job.dir.read(name)
                                          : "";
  }
  return all;
}

RunResult resume_allowing(const Job& job, std::vector<std::string> changes, int expected_exit = 0) {
  changes.insert(changes.end(), {"SOLVER.RESUME_FROM=auto", "--allow-config-change"});
  return job.run(changes, expected_exit);
}

}  // namespace

TEST_CASE("other settings than the checkpoint has are refused one per line and nothing is touched") {
  Job job;
  job.run({at_iteration(13)}, 75);
  const auto before = content(job, "work");
  for (const std::string from : {std::string("auto"), job.checkpoint(16)}) {
    const RunResult result = job.run({kRate + "0.2", "SOLVER.TRAIN_HOOKS[LrHook].WARMUP_EPOCHS=2",
                                      "SOLVER.MAX_EPOCHS=9", "SOLVER.RESUME_FROM=" + from},
                                     2);
    CHECK(contains(result.err, "\n  SOLVER.MAX_EPOCHS: 6 in the checkpoint, 9 here\n"));
    CHECK(contains(result.err, "\n  SOLVER.OPTIMIZER.LEARNING_RATE: 0.1 in the checkpoint, 0.2 here\n"));
    CHECK(contains(result.err, "\n  SOLVER.TRAIN_HOOKS[LrHook].WARMUP_EPOCHS: 1 in the checkpoint, 2 here"));
    CHECK(contains(result.err, "gantry run --allow-config-change"));
    CHECK(contains(result.err, job.checkpoint(16)));
    CHECK(content(job, "work") == before);
  }
  CHECK(job.losses().size() == 16);
}

TEST_CASE("a change in the file is shown with its line") {
  Job job;
  job.run({at_iteration(4)}, 75);
  const std::string changed = e2e::replaced(e2e::kJob, "MOMENTUM: 0.9", "MOMENTUM: 0.8");
  job.dir.write("job.yaml", changed);
  const RunResult result = job.resume({}, 2);
  const int line = e2e::line_of(changed, "MOMENTUM: 0.8");
  CHECK(contains(result.err,
                 "SOLVER.OPTIMIZER.MOMENTUM: 0.9 in the checkpoint, 0.8 here (job.yaml:" + std::to_string(line) + ")"));
  CHECK(contains(result.err, "command line 'SOLVER.RESUME_FROM=auto': RESUME_FROM leads to "));
}

TEST_CASE("of a component that is new or gone or another one the name alone is shown") {
  Job job;
  job.run({at_iteration(4)}, 75);
  const RunResult result = job.resume({"SOLVER.OPTIMIZER={NAME: AdamW, LEARNING_RATE: 0.01}",
                                       "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, "
                                       "ACCUMULATE_STEP: 3}, {NAME: ModelEmaHook}]"},
                                      2);
  CHECK(contains(result.err, "\n  SOLVER.OPTIMIZER: SGD in the checkpoint, AdamW here"));
  CHECK(contains(result.err, "\n  SOLVER.TRAIN_HOOKS[LrHook]: LrHook in the checkpoint, absent here"));
  CHECK(contains(result.err, "\n  SOLVER.TRAIN_HOOKS[ModelEmaHook]: absent in the checkpoint, ModelEmaHook here"));
  CHECK_FALSE(contains(result.err, "SOLVER.OPTIMIZER.MOMENTUM"));
  CHECK_FALSE(contains(result.err, "WARMUP_EPOCHS"));
  CHECK_FALSE(contains(result.err, "SOLVER.TRAIN_HOOKS[ModelEmaHook]."));
}

TEST_CASE("with --allow-config-change the run goes on with the new settings and says which") {
  Job before, job;
  before.run();
  job.run({at_iteration(13)}, 75);
  const RunResult result = resume_allowing(job, {kRate + "0.2"});
  CHECK(contains(result.err, "SOLVER.OPTIMIZER.LEARNING_RATE: 0.1 in the checkpoint, 0.2 here\n"));
  CHECK(contains(job.dir.read("work/config.yaml"), "LEARNING_RATE: 0.2"));
  const auto expected = before.losses(), losses = job.losses();
  REQUIRE(losses.size() == expected.size());
  CHECK(losses.at(16) == expected.at(16));  // computed before the first step with the new rate
  CHECK(losses.at(20) != expected.at(20));
  // From now on those are the settings to go on with.
  CHECK_FALSE(contains(job.resume({kRate + "0.2"}).err, "LEARNING_RATE"));
  job.resume({}, 2);
}

TEST_CASE("another length of the run is said in one line and goes on") {
  Job job;
  job.run({"SOLVER.MAX_EPOCHS=1"});
  const RunResult result = job.resume({"SOLVER.MAX_EPOCHS=2"});
  CHECK(contains(result.err, "SOLVER.MAX_EPOCHS: 1 in the checkpoint, 2 here\n"));
  CHECK(job.losses().size() == 20);
}

TEST_CASE("going from epochs to steps is no change of length alone") {
  Job job(e2e::replaced(e2e::kJob, "MAX_EPOCHS: 6", "MAX_STEPS: 40"));
  job.run({at_iteration(4)}, 75);
  job.resume({"SOLVER.MAX_STEPS=30", at_iteration(13)}, 75);
  job.dir.write("job.yaml", e2e::kJob);
  const RunResult result = job.resume({}, 2);
  CHECK(contains(result.err, "SOLVER.MAX_STEPS: 40 in the checkpoint, absent here") !=
        contains(result.err, "SOLVER.MAX_STEPS: 30 in the checkpoint, absent here"));
  CHECK(contains(result.err, "SOLVER.MAX_EPOCHS: absent in the checkpoint, 6 here"));
}

TEST_CASE("what does not change the result may be another at any time") {
  Job undisturbed, job;
  undisturbed.run({"SOLVER.MAX_EPOCHS=2"});
  job.run({"SOLVER.MAX_EPOCHS=2", at_iteration(7)}, 75);
  job.dir.write("job.yaml", e2e::replaced(e2e::kJob, "  HOOKS:\n", "  HOOKS:\n    - {NAME: test/LossTrace, FILE: more.txt}\n"));
  const RunResult result = job.resume({"SOLVER.MAX_EPOCHS=2", "SOLVER.TRAIN_DATA.NUM_WORKERS=0",
                                       "SOLVER.LOG_FILE=other.log", "ENV.SIGNALS=[TERM]", "ENV.MAX_RUN_TIME=1 h"});
  CHECK_FALSE(contains(result.err, "in the checkpoint"));
  e2e::check_same_training(undisturbed, job);
}

TEST_CASE("an evaluation with other settings than the training had is nobody's business") {
  Job job;
  job.run({"SOLVER.MAX_EPOCHS=1"});
  const RunResult result = job.resume({"SOLVER.MODE=eval", kRate + "0.2"});
  CHECK_FALSE(contains(result.err, "in the checkpoint"));
}
