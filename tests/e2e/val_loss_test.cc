#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "e2e/resume.h"

// ValLossHook. history.json is read by Python.

namespace {

using e2e::at_iteration;
using e2e::Job;
using Names = std::vector<std::string>;

const std::string kPython = GANTRY_SOURCE_DIR "/.venv/bin/python";
const std::string kData =
    "DATA: {NAME: Synthetic, SIZE: 21, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, NUM_WORKERS: 1}";

/// The classifier of the resume tests, which drops out in evaluations as well: noise that must be fixed.
Job job_with(const std::string& hook) {
  return Job(
      e2e::replaced(e2e::kJob, "    - {NAME: test/RaiseSignal, SIGNAL: TERM}\n",
                    "    - {NAME: test/RaiseSignal, SIGNAL: TERM}\n" + (hook.empty() ? "" : "    - " + hook + "\n")));
}
std::string hook_with(const std::string& more) { return "{NAME: ValLossHook, " + kData + more + "}"; }

void check_python(const std::string& folder, const std::string& script) {
  const std::string beginning =
      "import json, math\nhistory = json.load(open('history.json'))\nsummary, detail = history['summary'], "
      "history['detail']\n";
  const e2e::RunResult result = e2e::run_program({kPython, "-c", beginning + script}, folder);
  INFO(result.describe());
  CHECK(result.exit_code == 0);
}

/// Linear regression from fixed weights on points that a formula gives: what Python can compute as well.
const std::vector<std::string> kRegression = {
    "SOLVER.TRAIN_DATA={NAME: test/Points, SIZE: 8, BATCH_SIZE: 8, NUM_WORKERS: 0}",
    "SOLVER.EVAL_DATA=null",
    "SOLVER.METRICS=[]",
    "SOLVER.LR_SCHEDULER=null",
    "SOLVER.MODEL={NAME: test/Regression}",
    "SOLVER.MAX_EPOCHS=2",
    "SOLVER.HOOKS=[{NAME: ValLossHook, VAL_INTERVAL: 1000, META_FIELD: [tag], "
    "DATA: {NAME: test/TaggedPoints, SIZE: 11, BATCH_SIZE: 4, NUM_WORKERS: 0}}]",
    "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}]"};

constexpr char kRegressionInPython[] = R"(
def loss_of(i):
    x = [((7 * i + 13 * j) % 17) / 8 - 1 for j in range(4)]
    y = ((5 * i) % 11) / 5 - 1
    return (sum((0.1 * j - 0.25) * x[j] for j in range(4)) + 0.5 - y) ** 2
def mean(indices): return sum(map(loss_of, indices)) / len(indices)
)";

}  // namespace

TEST_CASE("the validation loss is taken every VAL_INTERVAL iterations from the first on and at the end") {
  const Job job = job_with(hook_with(", VAL_INTERVAL: 8"));
  job.run({"SOLVER.MAX_EPOCHS=2"});
  CHECK(job.names("work/val_loss") == Names{"curve.svg", "history.json"});
  check_python(job.work("val_loss"), R"(
assert [e["iteration"] for e in summary] == [0, 8, 16, 20] and [e["epoch"] for e in summary] == [1, 1, 2, 2]
assert all(e["samples"] == 21 and math.isfinite(e["loss"]) for e in summary) and detail == []
assert len({e["loss"] for e in summary}) == 4
)");
}

TEST_CASE("the validation loss is that of all samples whatever the size of the batches") {
  for (const std::string size : {"1", "4", "11"}) {
    INFO("batches of " << size);
    Job job;
    std::vector<std::string> changes = kRegression;
    changes.push_back("SOLVER.HOOKS[ValLossHook].DATA.BATCH_SIZE=" + size);
    job.run(changes);
    check_python(job.work("val_loss"), std::string(kRegressionInPython) + R"(
first = summary[0]
assert first["samples"] == 11 and abs(first["loss"] - mean(range(11))) < 1e-12, (first, mean(range(11)))
parts = {d["value"]: d for d in detail if d["iteration"] == 0}
assert set(parts) == {"even", "odd"} and all(d["field"] == "tag" for d in detail)
assert parts["even"]["samples"] == 6 and abs(parts["even"]["loss"] - mean(range(0, 11, 2))) < 1e-12
assert parts["odd"]["samples"] == 5 and abs(parts["odd"]["loss"] - mean(range(1, 11, 2))) < 1e-12
assert [e["iteration"] for e in summary] == [0, 2] and summary[1]["loss"] != first["loss"]
)");
  }
}

TEST_CASE("VAL_LIMITATION_SIZE limits the samples to whole batches") {
  Job job;
  std::vector<std::string> changes = kRegression;
  changes.push_back("SOLVER.HOOKS[ValLossHook].VAL_LIMITATION_SIZE=5");
  job.run(changes);
  check_python(job.work("val_loss"), std::string(kRegressionInPython) +
                                         "assert summary[0]['samples'] == 8\n"
                                         "assert abs(summary[0]['loss'] - mean(range(8))) < 1e-12\n");
}

TEST_CASE("every evaluation of the validation loss sees the same noise") {
  // Nothing is learnt: what differs between two values is noise.
  const Job job = job_with(hook_with(", VAL_INTERVAL: 5"));
  const std::vector<std::string> still = {"SOLVER.MAX_EPOCHS=2", "SOLVER.OPTIMIZER.LEARNING_RATE=0",
                                          "SOLVER.LR_SCHEDULER=null", "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}]",
                                          "SOLVER.MODEL.BACKBONE={NAME: test/DropoutMlp, INPUT_SIZE: 64}"};
  job.run(still);
  check_python(job.work("val_loss"), "assert len(summary) == 5 and len({e['loss'] for e in summary}) == 1, summary\n");
  const std::string first = job.dir.read("work/val_loss/history.json");
  std::vector<std::string> other = still;
  other.push_back("SOLVER.HOOKS[ValLossHook].VAL_SEED=7");
  job.run(other);
  CHECK(job.dir.read("work/val_loss/history.json") != first);
}

TEST_CASE("ValLossHook changes nothing in training") {
  const std::vector<std::string> three = {"SOLVER.MAX_EPOCHS=3"};
  const Job without = job_with(""), with = job_with(hook_with(", VAL_INTERVAL: 1"));
  without.run(three);
  with.run(three);
  REQUIRE(without.losses().size() == 30);
  CHECK(with.losses() == without.losses());
  for (const std::string file : {"model.safetensors", "optimizer.safetensors"})
    CHECK(with.dir.read("work/checkpoints/ldm_step-30/" + file) ==
          without.dir.read("work/checkpoints/ldm_step-30/" + file));
}

TEST_CASE("a validation loss that stopped and went on is that of a run that did not") {
  const std::string hook = hook_with(", VAL_INTERVAL: 4");
  const Job undisturbed = job_with(hook), stopped = job_with(hook);
  const std::vector<std::string> three = {"SOLVER.MAX_EPOCHS=3"};
  undisturbed.run(three);
  stopped.run({three[0], at_iteration(2)}, 75);
  stopped.resume({three[0], at_iteration(13)}, 75);
  // Killed: what it wrote since the last checkpoint is computed again, and not written twice.
  stopped.resume({three[0], at_iteration(25), "SOLVER.HOOKS[test/RaiseSignal].SIGNAL=KILL"}, -1);
  stopped.resume(three);
  CHECK(stopped.dir.read("work/val_loss/history.json") == undisturbed.dir.read("work/val_loss/history.json"));
  CHECK(stopped.dir.read("work/val_loss/curve.svg") == undisturbed.dir.read("work/val_loss/curve.svg"));
  check_python(undisturbed.work("val_loss"),
               "assert [e['iteration'] for e in summary] == [0, 4, 8, 12, 16, 20, 24, 28, 30]\n");
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("a validation loss goes on in a run that is made longer") {
  const Job job = job_with(hook_with(", VAL_INTERVAL: 10"));
  job.run({"SOLVER.MAX_EPOCHS=1"});
  job.resume({"SOLVER.MAX_EPOCHS=2"});
  check_python(job.work("val_loss"), "assert [e['iteration'] for e in summary] == [0, 10, 20], summary\n");
}

TEST_CASE("the curve of the validation loss is a picture that readers of XML take") {
  Job job;
  job.run(kRegression);
  check_python(job.work("val_loss"), R"(
import xml.etree.ElementTree as xml
root = xml.parse("curve.svg").getroot()
space = "{http://www.w3.org/2000/svg}"
assert root.tag == space + "svg"
words = [t.text for t in root.iter(space + "text")]
assert "training iterations" in words and "loss" in words and "tag: even" in words and "tag: odd" in words
assert sum(len(list(g.iter(space + "circle"))) for g in root.iter(space + "g")) == 3 * 2
assert words.count("0") >= 1 and words.count("2") >= 1  # ticks
)");
}

TEST_CASE("a ValLossHook without a loss or a field that is not there or a folder elsewhere is refused") {
  const Job job = job_with(hook_with(""));
  const std::string hook = "SOLVER.HOOKS[ValLossHook].";
  CHECK(job.run({hook + "META_FIELD=[data_type]"}, 1).err.find("have no texts 'data_type'") != std::string::npos);
  for (const std::string folder : {"/tmp/x", "../x", "a/../../x", "''"}) {
    INFO(folder);
    CHECK(job.run({hook + "SAVE_FOLDER=" + folder}, 2).err.find("SAVE_FOLDER") != std::string::npos);
  }
  CHECK(job.run({hook + "VAL_DIM=time"}, 2).err.find("VAL_DIM") != std::string::npos);
  CHECK(job.run({hook + "VAL_LIMITATION_SIZE=0"}, 2).err.find("VAL_LIMITATION_SIZE") != std::string::npos);
  CHECK(job.run({hook + "DATA.BATCH_SIZE=0"}, 2).err.find("BATCH_SIZE") != std::string::npos);
  Job unlabelled;
  std::vector<std::string> changes = kRegression;
  changes.push_back("SOLVER.HOOKS=[{NAME: ValLossHook, DATA: {NAME: Synthetic, SIZE: 4, BATCH_SIZE: 2}}]");
  const e2e::RunResult result = unlabelled.run(changes, 1);
  INFO(result.err);
  CHECK(result.err.find("hook ValLossHook") != std::string::npos);
  CHECK(result.err.find("on a batch of DATA") != std::string::npos);
}
