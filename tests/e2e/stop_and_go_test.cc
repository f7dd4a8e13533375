#include "e2e/stop_and_go.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

// What `gantry stop-and-go` finds equal and different, and what it says about it.

namespace {

using e2e::job_with;
using e2e::StopAndGo;

using Texts = std::vector<std::string>;

int64_t total(const StopAndGo& run, const std::string& kind, const std::string& what) {
  int64_t sum = 0;
  for (const auto& comparison : run.report.at("comparisons"))
    if (comparison.at("kind") == kind) sum += comparison.at(what).get<int64_t>();
  return sum;
}

}  // namespace

TEST_CASE("a job stopped at places of every kind is equal to one that ran through") {
  // Before anything, within a window, at its end, in an evaluation twice, three times in one epoch, at an epoch's end,
  // after the last iteration, in the last evaluation.
  const StopAndGo run({"--stop-at", "eval:9,0,4,9,eval:1,eval:2,11,15,18,20,30"});
  CHECK(run.says("EQUAL: 11 stops change nothing"));
  CHECK(run.asked() == Texts{"0", "4", "9", "eval:1", "eval:2", "11", "15", "18", "20", "30", "eval:9"});
  const std::vector<int64_t> iterations{0, 6, 9, 10, 10, 13, 16, 19, 20, 30, 30};
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    const auto& stop = run.report.at("stops")[i];
    CHECK(stop.at("iteration") == iterations[i]);
    CHECK(stop.at("checkpoint") == "ldm_step-" + std::to_string(iterations[i]));
    CHECK(stop.at("exit_code") == 75);
    CHECK(stop.at("cause").get<std::string>().find("SIGTERM") == 0);
  }
  CHECK(run.report.at("result") == "equal");
  CHECK(run.report.at("iterations") == 30);
  CHECK(run.report.at("steps") == 12);
  // A recorder of iterations, of steps, of batches that are evaluated, of all of them.
  CHECK(run.comparison("recorder", "TrainInputCallback").at("entries") == 30);
  CHECK(run.comparison("recorder", "TrainLossCallback").at("entries") == 12);
  CHECK(run.comparison("recorder", "ValidInputCallback").at("entries") == 9);
  CHECK(run.comparison("recorder", "SampleIdCallback").at("entries") == 39);
  CHECK(total(run, "restored", "entries") == 11);
  CHECK(total(run, "stop_resume", "entries") == 11);
  CHECK(run.report.at("checkpoints") == total(run, "checkpoint", "entries"));
  CHECK(run.report.at("values") ==
        total(run, "recorder", "values") + total(run, "restored", "values") + total(run, "stop_resume", "values"));
  CHECK(run.comparison("checkpoint", "ldm_step-30").at("values") == 3);
  // Nothing is left, and the job's own folder was not touched.
  CHECK(run.left().empty());
  CHECK_FALSE(run.dir.has("work"));
}

TEST_CASE("a stop every few iterations waits for its window and comes once in it") {
  const StopAndGo run({"--every", "4", "--signal", "USR1"});
  CHECK(run.asked() == Texts{"4", "8", "12", "16", "20", "24", "28"});
  CHECK(run.report.at("stops")[0].at("cause") == "SIGUSR1, saved ldm_step-6");
  CHECK(run.report.at("result") == "equal");
  // 4 and 8 are in windows of their own; of 1, 2 and 3 one is enough.
  const StopAndGo dense({"--every", "1", "SOLVER.MAX_EPOCHS=1"});
  CHECK(dense.asked() == Texts{"1", "4", "7", "10"});
  CHECK(dense.report.at("result") == "equal");
}

TEST_CASE("a job killed at any place goes on at its newest checkpoint and ends equal") {
  const StopAndGo run({"--kill", "--stop-at", "0,5,eval:2,15,16,eval:8,30"});
  CHECK(run.report.at("result") == "equal");
  for (const auto& stop : run.report.at("stops")) CHECK(stop.at("signal") == "SIGKILL");
  CHECK(run.report.at("stops")[0].at("checkpoint") == nullptr);
  CHECK(run.report.at("stops")[3].at("checkpoint") == "ldm_step-10");
  CHECK(run.report.at("stops")[6].at("checkpoint") == "ldm_step-20");
  CHECK(run.says("began afresh: there was no checkpoint"));
  CHECK(total(run, "restored", "entries") == 4);
  CHECK(total(run, "stop_resume", "entries") == 0);
}

TEST_CASE("places drawn at random are the same for the same seed") {
  const StopAndGo once({"--random", "2", "--seed", "5", "SOLVER.MAX_EPOCHS=1"}),
      again({"--random", "2", "--seed", "5", "SOLVER.MAX_EPOCHS=1"}),
      another({"--random", "2", "--seed", "6", "SOLVER.MAX_EPOCHS=1"});
  CHECK(once.asked().size() == 2);
  CHECK(once.asked() == again.asked());
  CHECK(once.asked() != another.asked());
  // Without any option: three, of the seed 1.
  CHECK(StopAndGo({"SOLVER.MAX_EPOCHS=1"}).asked() ==
        StopAndGo({"--random", "3", "--seed", "1", "SOLVER.MAX_EPOCHS=1"}).asked());
}

TEST_CASE("stops in a test go on with the test alone") {
  const StopAndGo run({"--stop-at", "eval:8,test:1,test:2",
                       "SOLVER.TEST_DATA={NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, "
                       "NUM_WORKERS: 0}"});
  CHECK(run.report.at("result") == "equal");
  // The checkpoint of the pause has the name of the last one, and was saved at another place.
  CHECK(run.comparison("checkpoint", "ldm_step-30").at("values") == 2);
  CHECK(run.comparison("checkpoint", "ldm_step-30").at("note").get<std::string>().find("testing_due") !=
        std::string::npos);
}

TEST_CASE("jobs of other shapes are equal with and without stops") {
  const std::string plain = "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}]";
  // An epoch is a pass, evaluations come in its middle.
  CHECK(StopAndGo({"SOLVER.MAX_EPOCHS=null", "SOLVER.MAX_STEPS=24", "SOLVER.EVAL_INTERVAL=7",
                   "SOLVER.LR_SCHEDULER=null", plain, "--stop-at", "5,7,eval:2,eval:4,15,24"})
            .report.at("result") == "equal");
  CHECK(StopAndGo({"SOLVER.NUM_FOLDS=2", "--random", "4", "--seed", "3"}).report.at("result") == "equal");
  CHECK(StopAndGo({"SOLVER.HOOKS[CheckpointHook].ASYNC=true", "--stop-at", "3,5,eval:4,20"}).report.at("result") ==
        "equal");
  CHECK(StopAndGo({"SOLVER.OPTIMIZER={NAME: LBFGS, LEARNING_RATE: 0.1}", "SOLVER.LR_SCHEDULER=null", plain,
                   "SOLVER.MAX_EPOCHS=2", "--stop-at", "4,eval:2,13"})
            .report.at("result") == "equal");
}

// What ThroughputHook ran to count FLOPs, once in each process, was shown as if it were of the iteration.
TEST_CASE("a job with every hook that watches is equal with and without stops") {
  const StopAndGo run(
      {"SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook, GRADIENT_CLIP: 0.5}, {NAME: ThroughputHook}, "
       "{NAME: SafetensorsHook, INTERVAL: 5}, {NAME: ProbeDataHook, PROB_INTERVAL: 4}, "
       "{NAME: TensorboardLogHook, LOG_INTERVAL: 3}, {NAME: JsonLogHook, LOG_INTERVAL: 3}, "
       "{NAME: DistSamplerHook}, {NAME: LogHook, LOG_INTERVAL: 3}]",
       "--stop-at", "0,8,eval:2,27"});
  CHECK(run.report.at("result") == "equal");
}

TEST_CASE("hooks given on the command line and a log file elsewhere stay with their own run") {
  const StopAndGo run({"--stop-at", "13", "--work-dir", "all",
                       "SOLVER.HOOKS=[{NAME: test/LossTrace, FILE: losses.txt}]", "SOLVER.WORK_DIR=elsewhere",
                       "SOLVER.LOG_FILE=../log.txt", "SOLVER.RESUME_FROM=auto"});
  CHECK(run.report.at("result") == "equal");
  CHECK(run.comparison("recorder", "WeightsCallback").at("entries") == 12);
  CHECK_FALSE(run.dir.has("elsewhere"));
  for (const char* folder : {"continuous", "segment-1", "segment-2"}) {
    INFO(folder);
    CHECK(run.dir.has(std::string("all/") + folder + "/log.txt"));
    CHECK(run.dir.has(std::string("all/") + folder + ".log"));
    CHECK(run.dir.has(std::string("all/") + folder + "/checkpoints/last/checkpoint.json"));
  }
  CHECK(run.report.at("work_dir") == run.dir.path("all"));
  CHECK(run.says("Everything is in " + run.dir.path("all")));
}

TEST_CASE("a run that its configuration lets go on from a checkpoint is compared from there") {
  e2e::Job earlier(e2e::replaced(e2e::kJob, "MAX_EPOCHS: 6", "MAX_EPOCHS: 1"));
  earlier.run({"SOLVER.MAX_EPOCHS=1"});
  const std::string from = "SOLVER.RESUME_FROM=" + earlier.checkpoint(10);
  const StopAndGo run({from, "--stop-at", "14,eval:5,29"});
  CHECK(run.report.at("iterations") == 20);
  CHECK(run.asked() == Texts{"14", "eval:5", "29"});
  CHECK(run.report.at("stops")[1].at("iteration") == 20);
  const StopAndGo refused({from, "--stop-at", "4"}, 2);
  CHECK(
      refused.says("cannot stop after iteration 4: the run has 20 iterations, and the first one is number 11: it goes "
                   "on from a checkpoint"));
  // Killed before its first save, a run begins there once more.
  CHECK(StopAndGo({from, "--kill", "--stop-at", "13"}).report.at("result") == "equal");
}

TEST_CASE("a hook that forgets its state is found by recorder and place and both values") {
  const StopAndGo run({"--stop-at", "13,eval:5"}, 1, job_with("{NAME: test/ForgetfulRate}"));
  CHECK(run.report.at("result") == "different");
  const auto first = run.comparison("recorder", "LearningRateCallback").at("first");
  CHECK(first.at("field") == "lr");
  CHECK(first.at("mode") == "train");
  CHECK(first.at("epoch") == 2);
  CHECK(first.at("iteration") == 15);  // the end of the first window after the stop
  CHECK(first.at("event") == 5);
  // By then the continuous run had counted to 6, the interrupted one to 1.
  const double continuous = std::stod(first.at("expected").get<std::string>()),
               interrupted = std::stod(first.at("actual").get<std::string>());
  CHECK(continuous / interrupted == doctest::Approx(1.75 / 1.125));
  CHECK(run.says("DIFFERENT"));
  CHECK(run.says(
      "  LearningRateCallback, event 5: train, epoch 2, iteration 15, batch 5\n    lr\n      continuous        " +
      first.at("expected").get<std::string>() + "\n      interrupted       " + first.at("actual").get<std::string>()));
  CHECK(run.comparison("checkpoint", "ldm_step-10").at("equal") == true);
  CHECK(run.comparison("checkpoint", "ldm_step-30").at("equal") == false);
  CHECK(run.comparison("checkpoint", "ldm_step-30").at("first").at("field").get<std::string>().starts_with("model/"));
  CHECK(run.report.at("repeats_itself") == true);
  CHECK(run.says("The difference comes from stopping"));
  // What there is to look at stays, and is named.
  REQUIRE(run.left().size() == 1);
  CHECK(run.says(run.report.at("work_dir").get<std::string>()));
  CHECK(run.dir.path(run.left()[0]) == run.report.at("work_dir").get<std::string>() + "/");
}

TEST_CASE("with whole values a difference shows the numbers and how far they are apart") {
  const StopAndGo run({"--stop-at", "13", "--whole", "--work-dir", "all"}, 1, job_with("{NAME: test/ForgetfulRate}"));
  const auto numbers = run.comparison("recorder", "WeightsCallback").at("first").at("numbers");
  CHECK(numbers.at("of").get<int64_t>() >= 3);
  CHECK(numbers.at("count").get<int64_t>() >= 1);
  CHECK(numbers.at("max_absolute").get<double>() > 0);
  CHECK(numbers.at("ulps").get<int64_t>() > 0);
  const double apart =
      std::stod(numbers.at("expected").get<std::string>()) - std::stod(numbers.at("actual").get<std::string>());
  CHECK(std::abs(apart) <= numbers.at("max_absolute").get<double>());
  CHECK(std::abs(apart) > 0);
}

TEST_CASE("a recorder with a TOLERANCE lets values differ by so much and no more") {
  const std::string job =
      job_with("{NAME: test/ForgetfulRate, FACTOR: 1.0e-6}\n    - {NAME: WeightsCallback, TOLERANCE: 0.01}");
  const StopAndGo wide({"--stop-at", "13"}, 1, job);
  const auto weights = wide.comparison("recorder", "WeightsCallback");
  CHECK(weights.at("equal") == true);
  CHECK(weights.at("entries") == 12);
  CHECK(weights.at("within_tolerance").get<int64_t>() > 0);
  CHECK(wide.comparison("recorder", "LearningRateCallback").at("equal") == false);
  CHECK(wide.says("within TOLERANCE"));
  const StopAndGo narrow({"--stop-at", "13"}, 1, e2e::replaced(job, "TOLERANCE: 0.01", "TOLERANCE: 1.0e-9"));
  CHECK(narrow.comparison("recorder", "WeightsCallback").at("equal") == false);
  CHECK(narrow.comparison("recorder", "WeightsCallback").at("first").at("numbers").at("max_absolute").get<double>() <
        0.01);
}

TEST_CASE("a job that does not repeat itself is said to be so") {
  const StopAndGo run({"--stop-at", "13"}, 1, job_with("{NAME: test/ForgetfulRate, BY: process, FACTOR: 1.0e-5}"));
  CHECK(run.report.at("repeats_itself") == false);
  CHECK(run.says("not a matter of stopping"));
  CHECK(run.says("differs first in\n  LearningRateCallback, event 0"));
}

TEST_CASE("a run that fails or pauses by itself is shown with its last lines") {
  const StopAndGo killed({}, 1, job_with("{NAME: test/RaiseSignal, SIGNAL: KILL, AT_ITERATION: 4}"));
  CHECK(killed.says("continuous run: ended with SIGKILL"));
  CHECK(killed.says("  | "));
  CHECK(killed.says("continuous.log"));
  CHECK(killed.report.at("result") == "failed");
  CHECK(killed.left().size() == 1);

  const StopAndGo paused({}, 2, job_with("{NAME: test/RequestStop, HOW: pause, AT_ITERATION: 4}"));
  CHECK(paused.says("continuous run: paused by itself (a test)"));

  const StopAndGo refused({"SOLVER.RESUME_FROM=nowhere"}, 2);
  CHECK(refused.says("there is no checkpoint"));
}

TEST_CASE("wrong arguments say what is wrong and nothing runs") {
  struct Case {
    Texts arguments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"--signal", "NOPE"}, "--signal is 'NOPE': expected TERM, INT, USR1, USR2, HUP"},
      {{"--signal", "KILL"}, "for SIGKILL write --kill"},
      {{"--stop-at", "x"}, "'x' is no place to stop at"},
      {{"--stop-at", "7,"}, "'' is no place to stop at"},
      {{"--stop-at", "-1"}, "'-1' is no place to stop at"},
      {{"--stop-at", "eval:0"}, "batches are counted from 1"},
      {{"--stop-at", "7,8,7"}, "7 is there twice"},
      {{"--every", "0"}, "--every is '0': expected a whole number, 1 or more"},
      {{"--random", "many"}, "--random is 'many'"},
      {{"--random", "2", "--every", "3"}, "give --every or --random, not both"},
      {{"--kill", "--signal", "TERM"}, "give --signal or --kill, not both"},
      {{"--mutate", "rng", "--kill"}, "give --mutate or --kill, not both"},
      {{"--mutate", "rng", "--stop-at", "4,7"}, "--mutate changes the checkpoint of one stop"},
      {{"--nope"}, "unrecognised option '--nope'"},
      {{"SOLVER.LEARN=1"}, "unknown key 'LEARN'"},
      {{"typo"}, "unexpected argument 'typo'"},
      {{"SOLVER={NAME: X}"}, "replaces the whole solver"},
      {{"ENV.SIGNALS=[INT]"}, "SIGTERM does not pause the run. Give --signal one of them"},
      {{"SOLVER.MODE=eval", "SOLVER.RESUME_FROM=x"}, "job.yaml trains nothing: MODE is eval"},
      {{"SOLVER.TRAIN_DATA=null"}, "job.yaml trains nothing: it has no TRAIN_DATA"},
      {{"--work-dir", "tmp"}, "--work-dir tmp is there already, and is no empty folder"},
      {{"--json", "no/such/folder/r.json"}, "there is no folder for such a file"},
  };
  for (const Case& wrong : cases) {
    INFO(wrong.message);
    Texts arguments = wrong.arguments;
    const bool own_report = arguments[0] == "--json";
    e2e::TempDir dir;
    dir.write("job.yaml", e2e::kJob);
    dir.write("tmp/keep", "");
    Texts words{"--plugin-dir", GANTRY_PROBE_DIR, "stop-and-go", "job.yaml"};
    if (!own_report) words.insert(words.end(), {"--json", "report.json"});
    words.insert(words.end(), arguments.begin(), arguments.end());
    const e2e::RunResult result = e2e::run_gantry(words, dir.path(), {.env = {{"TMPDIR", dir.path("tmp")}}});
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(wrong.message) != std::string::npos);
    CHECK(dir.list() == Texts{"job.yaml", "tmp/", "tmp/keep"});
  }
}

TEST_CASE("a place that the run does not have is refused once it is known how long it is") {
  const StopAndGo late({"--stop-at", "31"}, 2);
  CHECK(late.says("cannot stop after iteration 31: the run has 30 iterations"));
  CHECK(late.left().empty());
  CHECK(late.report.at("result") == "failed");
  CHECK(StopAndGo({"--stop-at", "eval:10"}, 2).says("the run has 9 evaluation batches"));
  CHECK(StopAndGo({"--stop-at", "test:1"}, 2).says("the run has no test batches"));
  CHECK(StopAndGo({"--random", "100"}, 2).says("cannot stop at 100 places"));
  CHECK(
      StopAndGo({"--stop-at", "4,5"}, 2)
          .says("the stops after iteration 4 and after iteration 5 are one: both wait for the end of the window, after "
                "iteration 6"));
  // A kill waits for nothing.
  CHECK(StopAndGo({"--stop-at", "4,5", "--kill", "SOLVER.MAX_EPOCHS=1"}).report.at("result") == "equal");
}

TEST_CASE("a job in which nothing is trained is not called equal") {
  const StopAndGo nothing({}, 1,
                          e2e::replaced(e2e::kJob,
                                        "  OPTIMIZER: {NAME: SGD, LEARNING_RATE: 0.1, MOMENTUM: 0.9}\n  "
                                        "LR_SCHEDULER: {NAME: CosineAnnealingLR, T_MAX: 24, UNIT: step}\n",
                                        ""));
  CHECK(nothing.report.at("result") == "failed");
  CHECK(nothing.says("no optimizer step was taken"));
}

TEST_CASE("ended by a signal it takes its runs with it and leaves nothing") {
  e2e::TempDir dir;
  dir.write("tmp/keep", "");
  dir.write("job.yaml", e2e::kJob);
  const std::string slow =
      "SOLVER.TRAIN_DATA={NAME: test/SlowImages, SIZE: 24, MS: 500, BATCH_SIZE: 2, SHUFFLE: false, NUM_WORKERS: 1}";
  // The process group of the children is theirs: they are looked for by their configuration.
  const std::string script =
      "\"$@\" & pid=$!; n=0; until ls tmp/gantry-stop-and-go-*/continuous/log.txt >/dev/null 2>&1; do "
      "sleep 0.1; n=$((n+1)); [ $n -lt 300 ] || exit 9; done; kill -TERM $pid; wait $pid; code=$?; "
      "for p in /proc/[0-9]*; do if tr '\\0' '\\n' < $p/cmdline 2>/dev/null | grep -q "
      "'^'$PWD'/tmp/gantry-stop-and-go.*yaml'; "
      "then echo still there: $p; fi; done; exit $code";
  const e2e::RunResult result =
      e2e::run_program({"/bin/sh", "-c", script, "sh", GANTRY_BINARY, "--plugin-dir", GANTRY_PROBE_DIR, "stop-and-go",
                        "job.yaml", slow, "--json", "report.json"},
                       dir.path(), {.env = {{"TMPDIR", dir.path("tmp")}, {"GANTRY_PLUGIN_PATH", ""}}});
  INFO(result.describe());
  CHECK(result.exit_code == 143);
  CHECK(result.err.find("ended by SIGTERM") != std::string::npos);
  CHECK(result.out.find("still there") == std::string::npos);
  // The job's own hooks write here; the command does not.
  for (const std::string& name : dir.list()) CHECK((!name.starts_with("tmp/") || name == "tmp/" || name == "tmp/keep"));
  CHECK_FALSE(dir.has("report.json"));
}
