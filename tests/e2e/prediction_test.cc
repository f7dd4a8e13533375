#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/resume.h"

// PredictionHook. Files are read by Python's safetensors and JSON readers.

namespace {

using e2e::at_iteration;
using e2e::Job;
using Names = std::vector<std::string>;

const std::string kPython = GANTRY_SOURCE_DIR "/.venv/bin/python";
const std::string kTest =
    "SOLVER.TEST_DATA={NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, NUM_WORKERS: 0}";

Job job_with(const std::string& hook) {
  return Job(e2e::replaced(e2e::kJob, "    - {NAME: test/RaiseSignal, SIGNAL: TERM}\n",
                           "    - {NAME: test/RaiseSignal, SIGNAL: TERM}\n    - " + hook + "\n"));
}

void check_python(const Job& job, const std::string& script) {
  const std::string beginning =
      "import json\nimport numpy as np\nfrom safetensors.numpy import load_file\nfrom safetensors import safe_open\n"
      "def lines(f): return [json.loads(l) for l in open('work/predictions/' + f)]\n";
  const e2e::RunResult result = e2e::run_program({kPython, "-c", beginning + script}, job.dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 0);
}

}  // namespace

TEST_CASE("predictions of a test are one row and one line for each sample with its number") {
  const Job job = job_with("{NAME: PredictionHook, KEYS: [logits, label]}");
  job.run({"SOLVER.MAX_EPOCHS=1", kTest});
  CHECK(job.names("work/predictions") == Names{"test.jsonl", "test.safetensors"});
  check_python(job, R"(
t = load_file("work/predictions/test.safetensors")
assert sorted(t) == ["label", "logits", "sample_id"]
assert t["logits"].shape == (12, 3) and t["logits"].dtype == np.float32
assert t["sample_id"].dtype == np.int64 and (t["sample_id"] == np.arange(12)).all()
assert safe_open("work/predictions/test.safetensors", "np").metadata() == {"mode": "test", "iteration": "10"}
rows = lines("test.jsonl")
assert [r["id"] for r in rows] == list(range(12)) and list(rows[0]) == ["id", "logits", "label"]
assert (np.array([r["logits"] for r in rows], np.float32) == t["logits"]).all()
assert [r["label"] for r in rows] == t["label"].tolist()
)");
}

TEST_CASE("the accuracy that saved predictions have is the one that the run reports") {
  const Job job = job_with("{NAME: PredictionHook, KEYS: [logits, label], MODES: [eval, test]}");
  const e2e::RunResult result = job.run({"SOLVER.MAX_EPOCHS=2", kTest});
  for (const std::string file : {"test", "eval-2"}) {
    INFO(file);
    const double reported = e2e::json_number(result.last_line(), {"metrics", file.substr(0, 4), "acc@1"});
    check_python(job, "t = load_file('work/predictions/" + file + ".safetensors')\n" +
                          "accuracy = (t['logits'].argmax(1) == t['label']).mean()\n" + "assert abs(accuracy - " +
                          std::to_string(reported) + ") < 1e-5, accuracy\n");
  }
  CHECK(job.names("work/predictions") == Names{"eval-1.jsonl", "eval-1.safetensors", "eval-2.jsonl",
                                               "eval-2.safetensors", "test.jsonl", "test.safetensors"});
}

TEST_CASE("shuffled samples stand in the order of their numbers") {
  const Job job = job_with("{NAME: PredictionHook, KEYS: [label], MODES: [train], FILE_FORMAT: jsonl}");
  job.run({"SOLVER.MAX_EPOCHS=2"});
  CHECK(job.names("work/predictions") == Names{"train-1.jsonl", "train-2.jsonl"});
  check_python(job, R"(
for f in ("train-1.jsonl", "train-2.jsonl"): assert [r["id"] for r in lines(f)] == list(range(66))
# A label belongs to a sample whatever epoch it was seen in.
assert lines("train-1.jsonl") == lines("train-2.jsonl") and len({r["label"] for r in lines("train-1.jsonl")}) == 3
)");
}

TEST_CASE("one format alone and a limit on samples are obeyed") {
  const Job job = job_with("{NAME: PredictionHook, KEYS: [logits], FILE_FORMAT: safetensors, MAX_SAMPLES: 7}");
  job.run({"SOLVER.MAX_EPOCHS=1", kTest});
  CHECK(job.names("work/predictions") == Names{"test.safetensors"});
  check_python(job,
               "t = load_file('work/predictions/test.safetensors')\n"
               "assert t['sample_id'].tolist() == list(range(7)) and t['logits'].shape == (7, 3)\n");
}

TEST_CASE("texts go to the lines and large tensors to the safetensors file") {
  const Job job = job_with("{NAME: PredictionHook, KEYS: [x, tag], MODES: [eval]}");
  job.run({"SOLVER.TRAIN_DATA=null", "SOLVER.MAX_EPOCHS=null", "SOLVER.OPTIMIZER=null", "SOLVER.LR_SCHEDULER=null",
           "SOLVER.METRICS=[]", "SOLVER.TRAIN_HOOKS=[]",
           "SOLVER.EVAL_DATA={NAME: test/TaggedPoints, SIZE: 5, BATCH_SIZE: 2, NUM_WORKERS: 0}",
           "SOLVER.MODEL={NAME: test/Regression}"});
  check_python(job, R"(
rows = lines("eval.jsonl")
assert [r["tag"] for r in rows] == ["even", "odd", "even", "odd", "even"]
assert rows[3]["x"] == [((7 * 3 + 13 * j) % 17) / 8 - 1 for j in range(4)]
assert sorted(load_file("work/predictions/eval.safetensors")) == ["sample_id", "x"]
)");
  const Job images = job_with("{NAME: PredictionHook, KEYS: [img, label]}");
  const e2e::RunResult result =
      images.run({"SOLVER.MAX_EPOCHS=1", e2e::replaced(kTest, "SHAPE: [1, 8, 8]", "SHAPE: [1, 32, 32]"),
                  "SOLVER.TRAIN_DATA={NAME: Synthetic, SIZE: 14, SHAPE: [1, 32, 32], NUM_CLASSES: 3, BATCH_SIZE: 7}",
                  "SOLVER.EVAL_DATA=null", "SOLVER.HOOKS[CheckpointHook].SAVE_BEST=false",
                  "SOLVER.MODEL.BACKBONE={NAME: test/DropoutMlp, INPUT_SIZE: 1024}"});
  CHECK(result.err.find("'img' has more than 1000 values a sample") != std::string::npos);
  check_python(images,
               "assert list(lines('test.jsonl')[0]) == ['id', 'label']\n"
               "assert load_file('work/predictions/test.safetensors')['img'].shape == (12, 1, 32, 32)\n");
}

TEST_CASE("keys that are not there or not one for each sample are refused by name") {
  const Job job = job_with("{NAME: PredictionHook, KEYS: [logits]}");
  const auto with = [](const std::string& keys) {
    return std::vector<std::string>{"SOLVER.MAX_EPOCHS=1", kTest, "SOLVER.HOOKS[PredictionHook].KEYS=" + keys};
  };
  const e2e::RunResult unknown = job.run(with("[logit]"), 1);
  INFO(unknown.err);
  CHECK(unknown.err.find("'logit'") != std::string::npos);
  CHECK(unknown.err.find("logits") != std::string::npos);
  CHECK(job.run(with("[loss]"), 1).err.find("'loss' has the shape [] for a batch of 5 samples") != std::string::npos);
  CHECK_FALSE(job.dir.has("work/predictions"));
  CHECK(job.run(with("[]"), 2).err.find("KEYS") != std::string::npos);
  CHECK(job.run(with("[label, label]"), 2).err.find("KEYS names 'label' twice") != std::string::npos);
  CHECK(job.run(with("[sample_id]"), 2).err.find("leave 'sample_id' out of KEYS") != std::string::npos);
  CHECK(job.run({"SOLVER.HOOKS[PredictionHook].MODES=[validation]"}, 2).err.find("MODES") != std::string::npos);
}

TEST_CASE("a stopped run ends with the predictions of one that was not stopped and none of what was cut short") {
  const std::string hook = "{NAME: PredictionHook, KEYS: [logits, label], MODES: [eval, test]}";
  const Job undisturbed = job_with(hook), stopped = job_with(hook);
  const std::vector<std::string> three = {"SOLVER.MAX_EPOCHS=3", kTest};
  undisturbed.run(three);
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), three.begin(), three.end());
    return more;
  };
  stopped.run(with(e2e::at_point("eval.after_iter", 1, 1)), 75);
  CHECK(stopped.names("work/predictions").empty());
  stopped.resume(with({at_iteration(25)}), 75);
  stopped.resume(with(e2e::at_point("test.after_iter", 3, 1)), 75);
  CHECK_FALSE(stopped.dir.has("work/predictions/test.jsonl"));
  stopped.resume(three);
  REQUIRE(undisturbed.names("work/predictions").size() == 8);
  CHECK(stopped.names("work/predictions") == undisturbed.names("work/predictions"));
  for (const std::string& name : undisturbed.names("work/predictions"))
    CHECK(stopped.dir.read("work/predictions/" + name) == undisturbed.dir.read("work/predictions/" + name));
  CHECK(stopped.losses() == undisturbed.losses());
}

TEST_CASE("predictions of a training epoch that another process began are left out and those of later ones removed") {
  const Job job = job_with("{NAME: PredictionHook, KEYS: [label], MODES: [train], FILE_FORMAT: jsonl}");
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.end(), {"SOLVER.MAX_EPOCHS=4", "SOLVER.HOOKS[CheckpointHook].INTERVAL=2",
                             "SOLVER.HOOKS[CheckpointHook].SAVE_BEST=false"});
    return more;
  };
  // Saved after 20 iterations, the second epoch; killed in the fourth.
  job.run(with({at_iteration(35), "SOLVER.HOOKS[test/RaiseSignal].SIGNAL=KILL"}), -1);
  CHECK(job.names("work/predictions") == Names{"train-1.jsonl", "train-2.jsonl", "train-3.jsonl"});
  job.resume(with({at_iteration(23)}), 75);
  CHECK(job.names("work/predictions") == Names{"train-1.jsonl", "train-2.jsonl"});
  const e2e::RunResult result = job.resume(with({}));
  CHECK(job.names("work/predictions") == Names{"train-1.jsonl", "train-2.jsonl", "train-4.jsonl"});
  CHECK(result.err.find("predictions of epoch 3/4 train are not written") != std::string::npos);
}
