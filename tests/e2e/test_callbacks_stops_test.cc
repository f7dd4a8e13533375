#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gantry/checkpoint.h>
#include <gantry/recording.h>
#include <signal.h>

#include "e2e/recorded.h"

// What the test callbacks record of a run that is interrupted is what they record of one that is not; and those of them
// that interrupt it.

namespace {

using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;
using e2e::recorded;
using e2e::RunResult;

using Lines = std::vector<std::string>;

const std::string kOneEpoch = "SOLVER.MAX_EPOCHS=1";
const std::string kTwoEpochs = "SOLVER.MAX_EPOCHS=2";
const std::string kPlainWindows = "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=1";
const std::string kTest =
    "SOLVER.TEST_DATA={NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, NUM_WORKERS: 0}";

/// With the number of entries that two epochs of 10 iterations, in windows of 3, and their evaluations of 3 have.
const std::vector<std::pair<std::string, std::size_t>> kRecorders = {
    {"LearningRateCallback", 8},    {"GlobalStepStateCallback", 8},  {"ConsumedSamplesCallback", 8},
    {"OptimizerStateCallback", 16}, {"TrainInputCallback", 20},      {"TrainOutputCallback", 20},
    {"TrainLossCallback", 8},       {"ValidInputCallback", 6},       {"ValidOutputCallback", 6},
    {"ValidLossCallback", 6},       {"WeightsCallback", 8},          {"GradientCallback", 8},
    {"RngStateCallback", 14},       {"LrSchedulerStateCallback", 8}, {"HookStateCallback", 8},
    {"SampleIdCallback", 26},       {"EventOrderCallback", 86},      {"LogValueCallback", 26}};

std::string all_recorders() {
  Lines hooks;
  for (const auto& [name, entries] : kRecorders) hooks.push_back("{NAME: " + name + "}");
  return e2e::job_with(hooks);
}

void check_same_recordings(const Job& undisturbed, const Job& other) {
  for (const auto& [name, entries] : kRecorders) {
    INFO(name);
    CHECK(recorded(undisturbed, name).size() == entries);
    CHECK(other.lines(e2e::recording_of(name)) == undisturbed.lines(e2e::recording_of(name)));
  }
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string account(const Job& job) { return job.dir.read("work/checkpoints/last/checkpoint.json"); }

Lines operator+(Lines a, const Lines& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

RunResult run_to_signal(const Job& job, const Lines& changes, int signal) {
  const RunResult result = e2e::run_gantry(job.command(changes), job.dir.path());
  INFO(result.describe());
  REQUIRE(result.signal == signal);
  return result;
}

}  // namespace

TEST_CASE("recordings of a run stopped within epochs and in evaluations are those of one that was not") {
  const Job undisturbed(all_recorders()), stopped(all_recorders());
  undisturbed.run({kTwoEpochs});
  stopped.run({kTwoEpochs, at_iteration(1)}, 75);
  stopped.resume(Lines{kTwoEpochs} + at_point("eval.after_iter", 1, 1), 75);
  CHECK(contains(account(stopped), "\"phase\": \"evaluating_due\""));
  stopped.resume(Lines{kTwoEpochs} + at_point("train.after_epoch", 1), 75);
  stopped.resume({kTwoEpochs, at_iteration(13)}, 75);
  stopped.resume({kTwoEpochs, at_iteration(17)}, 75);
  stopped.resume({kTwoEpochs});
  check_same_recordings(undisturbed, stopped);
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("entries after the checkpoint that a killed run goes on from are dropped") {
  const Job undisturbed(all_recorders()), killed(all_recorders());
  const Lines often = {kTwoEpochs, "SOLVER.HOOKS[CheckpointHook].INTERVAL=2 steps"};
  undisturbed.run(often);
  const Lines kill = often + Lines{"SOLVER.HOOKS[test/RaiseSignal].SIGNAL=KILL"};
  run_to_signal(killed, kill + Lines{at_iteration(14)}, SIGKILL);
  // After ldm_step-10, at the epoch's end, the evaluation and more were recorded.
  run_to_signal(killed, kill + Lines{at_iteration(18), "SOLVER.RESUME_FROM=auto"}, SIGKILL);
  killed.resume(often + at_point("train.after_epoch", 2), 75);
  // Much of what there is comes again.
  const std::size_t before = recorded(killed, "SampleIdCallback").size();
  REQUIRE(before == 26);
  run_to_signal(killed, kill + Lines{at_iteration(8), "SOLVER.RESUME_FROM=work/checkpoints/ldm_step-6"}, SIGKILL);
  CHECK(recorded(killed, "SampleIdCallback").size() < before);
  killed.resume(often);
  check_same_recordings(undisturbed, killed);
}

TEST_CASE("a resumed run has all of the state that its checkpoint keeps") {
  const Job job(e2e::job_with({"{NAME: RestoredStateCallback, VALUES: whole}"}));
  job.run({kTwoEpochs, at_iteration(13)}, 75);
  CHECK_FALSE(job.dir.has(e2e::recording_of("RestoredStateCallback")));  // that run was not resumed
  job.resume({kTwoEpochs});
  const auto recording = gantry::read_recording(job.dir.path(e2e::recording_of("RestoredStateCallback")));
  REQUIRE(recording.entries.size() == 1);
  CHECK(recording.entries[0].iteration == 16);
  CHECK(recording.entries[0].epoch == 2);
  const gantry::State saved = gantry::read_checkpoint(gantry::read_checkpoint_info(job.checkpoint(16)));
  CHECK(recording.entries[0].values.size() == saved.leaves().size());
  for (const gantry::Recording::Value& value : recording.entries[0].values) {
    INFO(value.field);
    REQUIRE(saved.has(value.field));
    CHECK(at::equal(recording.whole(value), saved.tensor(value.field)));
  }
}

TEST_CASE("samples consumed before a pause are those after it") {
  const std::string stop = "TrainValInitConsumedSamplesStopAndGoCallback", resume = stop + "#2";
  const Job job(e2e::job_with({"{NAME: " + stop + ", MODE: STOP}", "{NAME: " + stop + ", MODE: RESUME}"}));
  const auto consumed = [&](const std::string& label) {
    const auto entries = recorded(job, label);
    REQUIRE(entries.size() == 1);
    return entries[0].value("train").text + " " + entries[0].value("eval").text;
  };
  job.run({kTwoEpochs, at_iteration(4)}, 75);
  CHECK(consumed(stop) == "42 0");  // the window of 3 4 5 was completed
  CHECK(consumed(resume) == "0 0");
  job.resume(Lines{kTwoEpochs} + at_point("train.after_epoch", 1), 75);
  CHECK(consumed(resume) == "42 0");
  CHECK(consumed(stop) == "66 12");
  job.resume({kTwoEpochs});
  CHECK(consumed(resume) == "66 12");  // where the next epoch began
  CHECK(consumed(stop) == "132 24");   // at the end of the last evaluation
}

TEST_CASE("a Mode other than STOP and RESUME and a TOLERANCE below 0 are refused by line") {
  const std::string text =
      e2e::job_with({"{NAME: TrainValInitConsumedSamplesStopAndGoCallback, MODE: CONTINUOUS}",
                     "{NAME: WeightsCallback, TOLERANCE: -0.1}", "{NAME: SignalAfterGivenStepCallback}",
                     "{NAME: SignalAtCallback, ITERATION: 1, SIGNAL: SIGSEGV}"});
  const Job job(text);
  const std::string err = job.run({}, 2).err;
  INFO(err);
  const auto at = [&](const std::string& part) { return "job.yaml:" + std::to_string(e2e::line_of(text, part)); };
  CHECK(contains(err, at("MODE: CONTINUOUS")));
  CHECK(contains(err, "STOP"));
  CHECK(contains(err, "RESUME"));
  CHECK(contains(err, at("TOLERANCE: -0.1")));
  CHECK(contains(err, at("SignalAfterGivenStepCallback")));
  CHECK(contains(err, "STOP_STEP"));
  CHECK(contains(err, at("SIGSEGV")));
  CHECK(contains(err, "SIGTERM"));
  CHECK_FALSE(job.dir.has("work"));

  const Job evaluation(e2e::job_with({"{NAME: SignalAtCallback, MODE: eval, ITERATION: 0}"}));
  CHECK(contains(evaluation.run({}, 2).err, "ITERATION is 0, and MODE is eval"));
}

TEST_CASE("a run completes the step that had begun when SignalAfterGivenStepCallback came") {
  const Job job(
      e2e::job_with({"{NAME: SignalAfterGivenStepCallback, STOP_STEP: 2}", "{NAME: GlobalStepStateCallback}"}));
  const RunResult first = job.run({}, 75);
  CHECK(contains(first.err, "SIGUSR2"));
  CHECK(job.link("last") == "ldm_step-9");  // three windows of 3
  CHECK(recorded(job, "GlobalStepStateCallback").size() == 3);
  // From there on at each start of a step: the last window of the epoch is a short one.
  job.resume({}, 75);
  CHECK(job.link("last") == "ldm_step-10");
  // The evaluation comes next; each of its batches starts a step, and it begins again every time.
  job.resume({}, 75);
  CHECK(contains(account(job), "\"phase\": \"evaluating_due\""));
  job.resume({}, 75);
  CHECK(contains(account(job), "\"phase\": \"evaluating_due\""));
  job.resume({"SOLVER.HOOKS[SignalAfterGivenStepCallback].STOP_STEP=1000"});
  CHECK(job.link("last") == "ldm_step-60");
}

TEST_CASE("without CheckpointHook a signal ends the process as it does") {
  const std::string config = e2e::replaced(e2e::job_with({"{NAME: SignalAfterGivenStepCallback, STOP_STEP: 1}"}),
                                           "    - {NAME: CheckpointHook, SAVE_LAST: true, SAVE_BEST_BY: -loss}\n", "");
  const Job job(config);
  run_to_signal(job, {}, SIGUSR2);
  run_to_signal(job, {"SOLVER.HOOKS[SignalAfterGivenStepCallback].SIGNAL=SIGKILL"}, SIGKILL);
}

TEST_CASE("StopAfterValidEpochEndCallback pauses after each evaluation and nothing changes by it") {
  const std::string config = e2e::job_with({"{NAME: LearningRateCallback}", "{NAME: EventOrderCallback}"});
  const Job undisturbed(config);
  const Job stopped(e2e::replaced(config, "    - {NAME: test/RaiseSignal",
                                  "    - {NAME: StopAfterValidEpochEndCallback}\n"
                                  "    - {NAME: test/RaiseSignal"));
  undisturbed.run({kTwoEpochs});
  const RunResult first = stopped.run({kTwoEpochs}, 75);
  CHECK(contains(first.err, "pausing: StopAfterValidEpochEndCallback"));
  CHECK(stopped.link("last") == "ldm_step-10");
  CHECK(contains(account(stopped), "\"phase\": \"pass_done\""));
  stopped.resume({kTwoEpochs}, 75);
  CHECK(stopped.link("last") == "ldm_step-20");
  stopped.resume({kTwoEpochs});
  e2e::check_same_training(undisturbed, stopped);
  for (const char* label : {"LearningRateCallback", "EventOrderCallback"})
    CHECK(stopped.lines(e2e::recording_of(label)) == undisturbed.lines(e2e::recording_of(label)));
  // Where nothing is trained it has nothing to pause.
  stopped.run({"SOLVER.MODE=eval", "SOLVER.WORK_DIR=elsewhere", "SOLVER.RESUME_FROM=work/checkpoints/last"});
}

TEST_CASE("SignalAtCallback stops training after the very iteration and before the first") {
  const Job job(e2e::job_with({"{NAME: SignalAtCallback, ITERATION: 7}", "{NAME: SampleIdCallback}"}));
  CHECK(contains(job.run({kTwoEpochs, kPlainWindows}, 75).err, "SIGTERM"));
  CHECK(job.link("last") == "ldm_step-7");
  CHECK(recorded(job, "SampleIdCallback").size() == 7);
  const std::string at = "SOLVER.HOOKS[SignalAtCallback].ITERATION=";
  // In windows a stop waits for the end of one.
  const Job windows(e2e::job_with({"{NAME: SignalAtCallback, ITERATION: 7}"}));
  windows.run({kTwoEpochs}, 75);
  CHECK(windows.link("last") == "ldm_step-9");
  job.resume({kTwoEpochs, kPlainWindows, at + "20", "SOLVER.HOOKS[SignalAtCallback].SIGNAL=USR1"}, 75);
  CHECK(job.link("last") == "ldm_step-20");
  job.resume({kTwoEpochs, kPlainWindows, at + "20"});

  const Job none(e2e::job_with({"{NAME: SignalAtCallback, ITERATION: 0}"}));
  none.run({kTwoEpochs, kPlainWindows}, 75);
  CHECK(none.link("last") == "ldm_step-0");
  none.resume({kTwoEpochs, kPlainWindows});
  CHECK(none.losses() == job.losses());
}

TEST_CASE("SignalAtCallback stops evaluations and tests after the very batch") {
  const Job job(e2e::job_with({"{NAME: SignalAtCallback, MODE: eval, ITERATION: 5}", "{NAME: SampleIdCallback}"}));
  job.run({kTwoEpochs, kTest}, 75);
  CHECK(job.link("last") == "ldm_step-20");
  CHECK(contains(account(job), "\"phase\": \"evaluating_due\""));
  CHECK(recorded(job, "SampleIdCallback").size() == 23);  // the second evaluation's are gone
  const std::string hook = "SOLVER.HOOKS[SignalAtCallback].";
  job.resume({kTwoEpochs, kTest, hook + "MODE=test", hook + "ITERATION=2"}, 75);
  CHECK(contains(account(job), "\"phase\": \"testing_due\""));
  job.resume({kTwoEpochs, kTest, hook + "MODE=train"});
  CHECK(recorded(job, "SampleIdCallback").size() == 29);
}

TEST_CASE("recorders of training are quiet where nothing is trained") {
  const Job job(all_recorders());
  job.run({kOneEpoch});
  job.run({"SOLVER.MODE=eval", "SOLVER.WORK_DIR=elsewhere", "SOLVER.RESUME_FROM=work/checkpoints/last"});
  for (const auto& [name, of_training] : kRecorders) {
    INFO(name);
    const bool evaluates = name.starts_with("Valid") || name == "SampleIdCallback" || name == "RngStateCallback" ||
                           name == "EventOrderCallback" || name == "LogValueCallback";
    CHECK(job.dir.has("elsewhere/recordings/evaluation/" + name + ".jsonl") == evaluates);
  }
  CHECK(job.lines("elsewhere/recordings/evaluation/ValidLossCallback.jsonl").size() == 1 + 3);
}

TEST_CASE("recorders change nothing that is computed and are no part of what must agree on a resume") {
  const Job with(all_recorders()), without;
  with.run({kTwoEpochs});
  without.run({kTwoEpochs, at_iteration(13)}, 75);
  CHECK(with.losses().size() == 20);
  without.dir.write("job.yaml", all_recorders());
  without.resume({kTwoEpochs});
  CHECK(with.losses() == without.losses());
  // From where it was added.
  CHECK(recorded(without, "LearningRateCallback").front().iteration == 18);
  CHECK(recorded(without, "LearningRateCallback").size() == 2);
}
