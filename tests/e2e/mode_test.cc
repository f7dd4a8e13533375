#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/resume.h"

// What a run uses of its configuration: MODE, TEST_WITH, FREEZE, ACCU_STEP, keys of SCEPTER's, and what an evaluation
// saves.

namespace {

using e2e::Job;
using e2e::RunResult;
using e2e::Training;

using Lines = std::vector<std::string>;

const std::string kTest =
    "SOLVER.TEST_DATA={NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, NUM_WORKERS: 0}";
const std::string kTrace = "SOLVER.HOOKS=[{NAME: test/Trace, FILE: points.txt}]";
const std::string kNoDropout = "SOLVER.MODEL.BACKBONE={NAME: Mlp, INPUT_SIZE: 64}";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int64_t count(const Lines& lines, const std::string& part) {
  int64_t n = 0;
  for (const std::string& line : lines) n += contains(line, part);
  return n;
}

Lines operator+(Lines a, const Lines& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("MODE eval makes one pass over EVAL_DATA with the weights of RESUME_FROM and trains nothing") {
  Job job;
  const RunResult trained = job.run({"SOLVER.MAX_EPOCHS=2", kTest, kNoDropout});
  const RunResult evaluated =
      job.run({"SOLVER.MODE=eval", "SOLVER.RESUME_FROM=work/checkpoints/last", kTest, kTrace, kNoDropout});
  CHECK(e2e::json_value(evaluated.last_line(), {"metrics", "eval", "acc@1"}) ==
        e2e::json_value(trained.last_line(), {"metrics", "eval", "acc@1"}));
  const Lines lines = job.lines("points.txt");
  CHECK(count(lines, "after_iter eval") == 3);
  CHECK(count(lines, "after_iter train") == 0);
  CHECK(count(lines, " test ") == 0);
}

TEST_CASE("MODE test runs TEST_DATA alone without a hook that trains") {
  Job job;
  job.run({"SOLVER.MAX_EPOCHS=1"});
  job.run({"SOLVER.MODE=test", "SOLVER.RESUME_FROM=auto", kTest, kTrace, "SOLVER.TRAIN_HOOKS=[]"});
  const Lines lines = job.lines("points.txt");
  CHECK(count(lines, "after_iter test") == 3);
  CHECK(count(lines, " eval ") == 0);
}

TEST_CASE("MODE eval without weights is refused before anything is built") {
  const Training run({"SOLVER.MODE=eval", e2e::kEvalData}, 2);
  CHECK(contains(run.result.err, "MODE is eval, and nothing says with which weights"));
  CHECK_FALSE(run.dir.has("work"));
}

TEST_CASE("MODE eval with RESUME_FROM auto and no checkpoint is refused") {
  const Training run({"SOLVER.MODE=eval", e2e::kEvalData, "SOLVER.RESUME_FROM=auto"}, 2);
  CHECK(contains(run.result.err, "there is no checkpoint in"));
}

TEST_CASE("a MODE whose data are not there is refused") {
  const Training run({"SOLVER.MODE=test", "SOLVER.RESUME_FROM=auto"}, 2);
  CHECK(contains(run.result.err, "MODE is test, which needs TEST_DATA"));
}

TEST_CASE("an evaluation alone makes exactly one pass whatever MAX_EPOCHS says") {
  for (const char* epochs : {"null", "1", "5"}) {
    const Training run({"SOLVER.TRAIN_DATA=null", std::string("SOLVER.MAX_EPOCHS=") + epochs, e2e::kEvalData, kTrace});
    CHECK(count(run.lines("points.txt"), "after_epoch eval") == 1);
  }
}

TEST_CASE("TEST_WITH best tests the best checkpoint and leaves the last one as it is") {
  const Lines job_changes = {"SOLVER.MAX_EPOCHS=3", kTest, "SOLVER.HOOKS[CheckpointHook].SAVE_BEST_BY=+loss",
                             "SOLVER.TEST_DATA.BATCH_SIZE=12", kNoDropout};
  Job best, last;
  const RunResult with_best = best.run(job_changes + Lines{"SOLVER.TEST_WITH=best"});
  const RunResult with_last = last.run(job_changes);
  // The highest loss is that of the first epoch: another model than the last one's.
  REQUIRE(best.link("best") != best.link("last"));
  Job again;
  const RunResult alone = again.run({"SOLVER.MODE=test", "SOLVER.RESUME_FROM=" + best.work("checkpoints/best"), kTest,
                                     "SOLVER.TRAIN_HOOKS=[]", "SOLVER.TEST_DATA.BATCH_SIZE=12", kNoDropout});
  const auto accuracy = [](const RunResult& r) { return e2e::json_value(r.last_line(), {"metrics", "test", "acc@1"}); };
  CHECK(accuracy(with_best) == accuracy(alone));
  // What a pause within that test saves is the last model.
  Job paused;
  paused.run(job_changes + Lines{"SOLVER.TEST_WITH=best"} + e2e::at_point("test.after_iter", 3), 75);
  CHECK(e2e::checkpoint_difference(paused.work("checkpoints/last"), last.work("checkpoints/last")).find("model") ==
        std::string::npos);
}

TEST_CASE("TEST_WITH best without a best checkpoint says what it needs") {
  Job job;
  const RunResult result = job.run(
      {"SOLVER.MAX_EPOCHS=1", kTest, "SOLVER.TEST_WITH=best", "SOLVER.HOOKS[CheckpointHook].SAVE_BEST_BY=''"}, 2);
  CHECK(contains(result.err, "CheckpointHook needs SAVE_BEST_BY"));
}

TEST_CASE("FREEZE leaves what it names as it is and trains the rest") {
  const auto values = [](const Lines& changes) {
    const Training run(changes + Lines{e2e::kValues, "SOLVER.MAX_EPOCHS=1"});
    return e2e::values_of(run.lines("digest.txt"));
  };
  const auto moved = [](const std::vector<std::vector<double>>& steps) {
    int64_t n = 0;
    for (std::size_t i = 0; i < steps.front().size(); ++i) n += steps.front()[i] != steps.back()[i];
    return n;
  };
  const int64_t all = moved(values({}));
  const int64_t head_alone = moved(values({"SOLVER.FREEZE={FREEZE_PART: [backbone]}"}));
  const int64_t but_bias = moved(values({"SOLVER.FREEZE={FREEZE_PART: [backbone], TRAIN_PART: ['^backbone.*bias$']}"}));
  const int64_t only_head = moved(values({"SOLVER.FREEZE={TRAIN_PART: ['^head\\.']}"}));
  CHECK(head_alone > 0);
  CHECK(head_alone < but_bias);
  CHECK(but_bias < all);
  CHECK(only_head == head_alone);
}

TEST_CASE("FREEZE with a name that no parameter has is refused with names that there are") {
  const Training run({"SOLVER.FREEZE={FREEZE_PART: [bakbone]}"}, 2);
  CHECK(contains(run.result.err, "no parameter of the model has 'bakbone' in its name; there are backbone."));
  CHECK(contains(run.result.err, "SOLVER.FREEZE"));
}

TEST_CASE("ACCU_STEP means what ACCUMULATE_STEP of the hook means") {
  const Training one({"SOLVER.ACCU_STEP=3", e2e::kDigest});
  const Training other({"SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, ACCUMULATE_STEP: 3}]", e2e::kDigest});
  CHECK(one.digests().size() == 8);
  CHECK(one.digests() == other.digests());
  const Training both(
      {"SOLVER.ACCU_STEP=3", "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, ACCUMULATE_STEP: 3}]", e2e::kDigest});
  CHECK(both.digests() == one.digests());
}

TEST_CASE("ACCU_STEP and another ACCUMULATE_STEP are refused with both values") {
  const Training run({"SOLVER.ACCU_STEP=2", "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, ACCUMULATE_STEP: 3}]"}, 2);
  CHECK(contains(run.result.err, "ACCU_STEP is 2, and ACCUMULATE_STEP of BackwardHook is 3"));
}

TEST_CASE("a key of SCEPTER at its neutral value is a note and at another an error that says what to do") {
  const Training run({"SOLVER.USE_AMP=false", "SOLVER.SAVE_MODULES=[model, optimizer]", "ENV.USE_PL=false"});
  CHECK(contains(run.result.err, "USE_AMP in solver TrainValSolver has no effect: training is in float32"));
  CHECK(contains(run.result.err, "SAVE_MODULES in solver TrainValSolver has no effect"));
  const Training refused({"SOLVER.USE_AMP=true", "SOLVER.TUNER=[{NAME: SwiftLoRA}]"}, 2);
  CHECK(contains(refused.result.err, "USE_AMP in solver TrainValSolver cannot be true: training is in float32"));
  CHECK(contains(refused.result.err, "TUNER in solver TrainValSolver cannot be a list: train a part"));
}

TEST_CASE("a schedule that goes by evaluations needs EVAL_DATA") {
  const Training run({"SOLVER.LR_SCHEDULER={NAME: ReduceLROnPlateau}"}, 2);
  CHECK(contains(run.result.err, "LR_SCHEDULER names ReduceLROnPlateau, which goes by evaluations"));
}

TEST_CASE("DO_FINAL_EVAL false leaves METRICS out") {
  const Training run({"SOLVER.DO_FINAL_EVAL=false", e2e::kEvalData});
  CHECK(e2e::json_value(run.result.last_line(), {"metrics", "eval", "loss"}).has_value());
  CHECK_FALSE(e2e::json_value(run.result.last_line(), {"metrics", "eval", "acc@1"}).has_value());
}

TEST_CASE("an evaluation without METRICS has the mean loss") {
  const Training run({"SOLVER.METRICS=[]", e2e::kEvalData});
  CHECK(e2e::json_value(run.result.last_line(), {"metrics", "eval", "loss"}).has_value());
}

TEST_CASE("SAVE_EVAL_DATA saves what METRICS see and EXTRA_KEYS of every sample in order") {
  const Training run(
      {"SOLVER.SAVE_EVAL_DATA=true", "SOLVER.EXTRA_KEYS=[img]", e2e::kEvalData, "SOLVER.EVAL_DATA.BATCH_SIZE=5"});
  CHECK(run.dir.has("work/eval_data/eval_00001.safetensors"));
  const std::string file = run.dir.read("work/eval_data/eval_00002.safetensors");
  CHECK(contains(file, R"("logits":{"dtype":"F32","shape":[12,3])"));
  CHECK(contains(file, R"("label":{"dtype":"I64","shape":[12])"));
  CHECK(contains(file, R"("img":{"dtype":"F32","shape":[12,1,4,4])"));
  CHECK(contains(file, R"("sample_id":{"dtype":"I64","shape":[12])"));
}

TEST_CASE("EXTRA_KEYS with an unknown name says which there are") {
  const Training run({"SOLVER.SAVE_EVAL_DATA=true", "SOLVER.EXTRA_KEYS=[imgs]", e2e::kEvalData}, 1);
  CHECK(contains(run.result.err, "imgs"));
  CHECK(contains(run.result.err, "img"));
}
