#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "e2e/probe.h"

// In which order things happen, and how a run ends.

namespace {

using e2e::Training;

const std::string kTrace = "SOLVER.HOOKS=[{NAME: test/Trace, FILE: trace.txt}]";

std::string trace_of(const std::string& points, const std::string& file = "trace.txt") {
  return "SOLVER.HOOKS=[{NAME: test/Trace, FILE: " + file + ", ONLY: [" + points + "]}]";
}

/// The traced lines that begin so.
int64_t count(const std::vector<std::string>& lines, const std::string& beginning) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& l) { return l.starts_with(beginning); });
}

/// "50/105" of the log lines of a mode: how many iterations were done when they were printed.
std::vector<std::string> log_counts(const std::string& log, const std::string& mode) {
  std::vector<std::string> counts;
  for (const std::string& line : e2e::lines_of(log)) {
    const std::size_t at = line.find(" " + mode + " [");
    if (at == std::string::npos) continue;
    std::string text = line.substr(at + mode.size() + 3, line.find(']', at) - at - mode.size() - 3);
    counts.push_back(text.substr(text.find_first_not_of(' ')));
  }
  return counts;
}

}  // namespace

TEST_CASE("hooks are called at every point in order through training evaluation and test") {
  const Training run({kTrace, e2e::kEvalData, e2e::kTestData, "SOLVER.LIMIT_TRAIN_BATCHES=2"});
  // point, mode ("+": the model is in training mode), epoch, iter/epoch_max_iter, total_iter
  const std::vector<std::string> expected = {
      "before_solve train+ 0 0/0 0",
      "before_epoch train+ 1 0/2 0",
      "before_all_iter train+ 1 0/2 0",
      "before_iter train+ 1 0/2 0",
      "before_step train+ 1 0/2 0 lr=0.1",
      "after_step train+ 1 0/2 0 step=1",
      "after_iter train+ 1 0/2 0",
      "before_iter train+ 1 1/2 1",
      "before_step train+ 1 1/2 1 lr=0.1",
      "after_step train+ 1 1/2 1 step=2",
      "after_iter train+ 1 1/2 1",
      "after_all_iter train+ 1 2/2 2",
      "before_epoch eval 1 0/1 0",
      "before_all_iter eval 1 0/1 0",
      "before_iter eval 1 0/1 0",
      "after_iter eval 1 0/1 0",
      "after_all_iter eval 1 1/1 1",
      "after_epoch eval 1 1/1 1",
      "evaluated train+ 1 2/2 2 eval,loss,acc@1",
      "after_epoch train+ 1 2/2 2",
      "before_epoch train+ 2 0/2 2",
      "before_all_iter train+ 2 0/2 2",
      "before_iter train+ 2 0/2 2",
      "before_step train+ 2 0/2 2 lr=0.1",
      "after_step train+ 2 0/2 2 step=3",
      "after_iter train+ 2 0/2 2",
      "before_iter train+ 2 1/2 3",
      "before_step train+ 2 1/2 3 lr=0.1",
      "after_step train+ 2 1/2 3 step=4",
      "after_iter train+ 2 1/2 3",
      "after_all_iter train+ 2 2/2 4",
      "before_epoch eval 2 0/1 1",
      "before_all_iter eval 2 0/1 1",
      "before_iter eval 2 0/1 1",
      "after_iter eval 2 0/1 1",
      "after_all_iter eval 2 1/1 2",
      "after_epoch eval 2 1/1 2",
      "evaluated train+ 2 2/2 4 eval,loss,acc@1",
      "after_epoch train+ 2 2/2 4",
      "before_epoch test 2 0/1 0",
      "before_all_iter test 2 0/1 0",
      "before_iter test 2 0/1 0",
      "after_iter test 2 0/1 0",
      "after_all_iter test 2 1/1 1",
      "after_epoch test 2 1/1 1",
      "evaluated train+ 2 0/0 4 test,loss,acc@1",
      "after_solve train+ 2 0/0 4",
  };
  CHECK(run.lines("trace.txt") == expected);
}

TEST_CASE("hooks run by ascending priority with ties in the order of the file") {
  const auto hook = [](const std::string& label, const std::string& more) {
    return "{NAME: test/Trace, FILE: trace.txt, ONLY: [before_iter, after_step], LABEL: " + label + more + "}";
  };
  const Training run(
      {"SOLVER.MAX_EPOCHS=1", "SOLVER.LIMIT_TRAIN_BATCHES=1",
       "SOLVER.HOOKS=[" + hook("late", ", PRIORITY: 300") + ", " + hook("b", "") + ", " + hook("a", "") + "]",
       "SOLVER.TRAIN_HOOKS=[" + hook("c", "") + ", {NAME: BackwardHook}, " + hook("early", ", PRIORITY: -5") + "]"});
  std::string order;
  for (const std::string& line : run.lines("trace.txt"))
    order += line.substr(0, line.find(' ', line.find(' ') + 1)) + "; ";
  CHECK(order ==
        "early before_iter; b before_iter; a before_iter; c before_iter; late before_iter; "
        "early after_step; b after_step; a after_step; c after_step; late after_step; ");
}

TEST_CASE("a mode list brings a hook to that mode alone") {
  const Training run({e2e::kEvalData, e2e::kTestData, "SOLVER.LIMIT_TRAIN_BATCHES=1",
                      "SOLVER.EVAL_HOOKS=[{NAME: test/Trace, FILE: eval.txt, ONLY: [before_solve, before_iter]}]",
                      "SOLVER.TEST_HOOKS=[{NAME: test/Trace, FILE: test.txt, ONLY: [before_iter, evaluated]}]"});
  CHECK(run.lines("eval.txt") == std::vector<std::string>{"before_solve train+ 0 0/0 0", "before_iter eval 1 0/1 0",
                                                          "before_iter eval 2 0/1 1"});
  // Capabilities reach every hook, whatever list it stands in.
  CHECK(run.lines("test.txt").size() == 4);
  CHECK(run.lines("test.txt")[2] == "before_iter test 2 0/1 0");
}

TEST_CASE("evaluations come at their interval and after the last epoch") {
  const Training run({trace_of("evaluated"), e2e::kEvalData, "SOLVER.LIMIT_TRAIN_BATCHES=1", "SOLVER.MAX_EPOCHS=3",
                      "SOLVER.EVAL_INTERVAL=2"});
  CHECK(run.lines("trace.txt") == std::vector<std::string>{"evaluated train+ 2 1/1 2 eval,loss,acc@1",
                                                           "evaluated train+ 3 1/1 3 eval,loss,acc@1"});
}

TEST_CASE("without training data there is one evaluation and one test") {
  const Training run({trace_of("after_iter, evaluated"), e2e::kEvalData, e2e::kTestData, "SOLVER.TRAIN_DATA=null"});
  CHECK(run.lines("trace.txt") ==
        std::vector<std::string>{"after_iter eval 0 0/1 0", "evaluated train+ 0 0/0 0 eval,loss,acc@1",
                                 "after_iter test 0 0/1 0", "evaluated train+ 0 0/0 0 test,loss,acc@1"});
  CHECK(run.number({"iteration"}) == 0);
}

TEST_CASE("limits cut training evaluation and test") {
  const Training run({trace_of("after_iter"), e2e::kEvalData, e2e::kTestData, "SOLVER.EVAL_DATA.BATCH_SIZE=3",
                      "SOLVER.TEST_DATA.BATCH_SIZE=3", "SOLVER.LIMIT_TRAIN_BATCHES=3", "SOLVER.LIMIT_EVAL_BATCHES=2"});
  const std::vector<std::string> lines = run.lines("trace.txt");
  CHECK(count(lines, "after_iter train+ 1") == 3);
  CHECK(count(lines, "after_iter train+ 2") == 3);
  CHECK(count(lines, "after_iter eval 1") == 2);
  CHECK(count(lines, "after_iter test 2") == 2);
}

TEST_CASE("a dry run does two iterations of each phase and leaves nothing behind") {
  const e2e::TempDir elsewhere, temporary;
  const std::string file = elsewhere.path("trace.txt");
  const Training run({trace_of("after_iter, after_solve", file), e2e::kEvalData, e2e::kTestData,
                      "SOLVER.EVAL_DATA.BATCH_SIZE=2", "SOLVER.TEST_DATA.BATCH_SIZE=2", "SOLVER.MAX_EPOCHS=5"},
                     0, "small.yaml", {"--dry-run"}, {.env = {{"TMPDIR", temporary.path()}}});
  CHECK(e2e::lines_of(elsewhere.read("trace.txt")) ==
        std::vector<std::string>{"after_iter train+ 1 0/2 0", "after_iter train+ 1 1/2 1", "after_iter eval 1 0/2 0",
                                 "after_iter eval 1 1/2 1", "after_iter test 1 0/2 0", "after_iter test 1 1/2 1",
                                 "after_solve train+ 1 0/0 2"});
  CHECK(run.dir.list() == std::vector<std::string>{"small.yaml"});
  CHECK(temporary.list().empty());
}

TEST_CASE("a run leaves its log and its resolved configuration which runs again to the same weights") {
  const Training run({e2e::kDigest, "SOLVER.LIMIT_TRAIN_BATCHES=2"});
  CHECK(run.dir.list() == std::vector<std::string>{"digest.txt", "small.yaml", "work/", "work/.gantry/",
                                                   "work/.gantry/lock", "work/config.yaml", "work/log.txt"});
  CHECK(run.dir.read("work/log.txt").find("done after epoch 2, iteration 4") != std::string::npos);
  const Training again({}, 0, run.dir.path("work/config.yaml"));
  CHECK(again.digests() == run.digests());
}

TEST_CASE("json ends with one line that a JSON reader takes and that says how it went") {
  const Training run({e2e::kEvalData, e2e::kTestData});
  const std::string line = run.result.last_line();
  INFO(line);
  CHECK(e2e::lines_of(run.result.out).size() == 1);
  const std::string script =
      "import json, sys\n"
      "report = json.loads(sys.argv[1])\n"
      "assert report['status'] == 'done' and report['error'] is None\n"
      "assert report['epoch'] == 2 and report['iteration'] == 20\n"
      "assert report['seconds'] > 0 and report['samples_per_s'] > 0\n"
      "assert abs(report['samples_per_s'] * report['seconds'] / 132 - 1) < 1e-6\n"
      "assert list(report['metrics']) == ['train', 'eval', 'test']\n"
      "assert list(report['metrics']['eval']) == ['loss', 'acc@1']\n"
      "assert 0 <= report['metrics']['test']['acc@1'] <= 1\n"
      "assert report['work_dir'] == sys.argv[2]\n";
  const e2e::RunResult python =
      e2e::run_program({"/usr/bin/python3", "-c", script, line, run.dir.path("work")}, run.dir.path());
  INFO(python.describe());
  CHECK(python.exit_code == 0);
}

TEST_CASE("the log has a line at each interval and one for the rest of a phase but none twice") {
  const auto data = [](const std::string& section, int size) {
    return "SOLVER." + section + "={NAME: Synthetic, SIZE: " + std::to_string(size) +
           ", SHAPE: [1, 4, 4], NUM_CLASSES: 3, BATCH_SIZE: 2, NUM_WORKERS: 0}";
  };
  const Training run({data("TRAIN_DATA", 210), data("EVAL_DATA", 14), data("TEST_DATA", 200), "SOLVER.MAX_EPOCHS=1",
                      "SOLVER.HOOKS=[{NAME: LogHook, LOG_INTERVAL: 50}]"});
  INFO(run.result.describe());
  CHECK(log_counts(run.result.err, "train") == std::vector<std::string>{"50/105", "100/105", "105/105"});
  CHECK(log_counts(run.result.err, "eval") == std::vector<std::string>{"7/7"});
  CHECK(log_counts(run.result.err, "test") == std::vector<std::string>{"50/100", "100/100"});
  CHECK(log_counts(run.dir.read("work/log.txt"), "train").size() == 3);
}

TEST_CASE("a hook that asks to finish ends the run after the window and the test still runs") {
  const Training run(
      {"SOLVER.HOOKS=[{NAME: test/Trace, FILE: trace.txt, ONLY: [after_iter, after_all_iter, evaluated, "
       "after_epoch, after_solve]}, {NAME: test/RequestStop, HOW: finish, AT_ITERATION: 4}]",
       e2e::kEvalData, e2e::kTestData, "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=4", "SOLVER.EVAL_INTERVAL=2"});
  const std::vector<std::string> lines = run.lines("trace.txt");
  const std::vector<std::string> after_training(lines.begin() + 8, lines.end());
  CHECK(count(lines, "after_iter train+") == 8);  // 4 is the first of the second window
  CHECK(after_training ==
        std::vector<std::string>{"after_all_iter train+ 1 8/10 8", "after_iter eval 1 0/1 0",
                                 "after_all_iter eval 1 1/1 1", "after_epoch eval 1 1/1 1",
                                 "evaluated train+ 1 8/10 8 eval,loss,acc@1", "after_epoch train+ 1 8/10 8",
                                 "after_iter test 1 0/1 0", "after_all_iter test 1 1/1 1", "after_epoch test 1 1/1 1",
                                 "evaluated train+ 1 0/0 8 test,loss,acc@1", "after_solve train+ 1 0/0 8"});
  CHECK(e2e::json_value(run.result.last_line(), {"status"}) == "done");
  CHECK(run.number({"iteration"}) == 8);
}

TEST_CASE("a hook that asks to finish after an evaluation lets the epoch end") {
  const Training run(
      {"SOLVER.HOOKS=[{NAME: test/Trace, FILE: trace.txt, ONLY: [evaluated, after_epoch]}, "
       "{NAME: test/RequestStop, HOW: finish, AT_EVALUATION: 2}]",
       e2e::kEvalData, "SOLVER.LIMIT_TRAIN_BATCHES=1", "SOLVER.MAX_EPOCHS=9"});
  CHECK(count(run.lines("trace.txt"), "after_epoch train+") == 2);
  CHECK(run.lines("trace.txt").back() == "after_epoch train+ 2 1/1 2");
}

TEST_CASE("a hook that asks to pause ends the run after the window with exit code 75") {
  const Training run(
      {"SOLVER.HOOKS=[{NAME: test/Trace, FILE: trace.txt, ONLY: [after_iter, after_all_iter, after_solve]}, "
       "{NAME: test/RequestStop, HOW: pause, AT_ITERATION: 2}]",
       e2e::kEvalData, e2e::kTestData, "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=2"},
      75);
  CHECK(run.lines("trace.txt") == std::vector<std::string>{"after_iter train+ 1 0/10 0", "after_iter train+ 1 1/10 1",
                                                           "after_iter train+ 1 2/10 2", "after_iter train+ 1 3/10 3",
                                                           "after_solve train+ 1 0/0 4"});
  CHECK(e2e::json_value(run.result.last_line(), {"status"}) == "interrupted");
  // Also without CheckpointHook there is something to go on from.
  CHECK(e2e::json_value(run.result.last_line(), {"checkpoint"}) == run.dir.path("work/checkpoints/ldm_step-4"));
  CHECK(run.dir.has("work/checkpoints/ldm_step-4/checkpoint.json"));
}

TEST_CASE("training without MAX_EPOCHS is refused before anything is written") {
  const Training run({"SOLVER.MAX_EPOCHS=null"}, 2);
  CHECK(run.result.err.find("MAX_EPOCHS or MAX_STEPS is needed with TRAIN_DATA") != std::string::npos);
  CHECK(run.dir.list() == std::vector<std::string>{"small.yaml"});
}

TEST_CASE("a solver that builds no model is told so and leaves nothing behind") {
  const Training run({"SOLVER.NAME=test/NoModelSolver"}, 1);
  INFO(run.result.describe());
  CHECK(run.result.err.find("solver test/NoModelSolver built no model: construct_model must call set_model") !=
        std::string::npos);
  CHECK_FALSE(run.dir.has("work"));
}
