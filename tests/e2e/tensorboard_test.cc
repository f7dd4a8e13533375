#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "e2e/recorders.h"

// TensorboardLogHook, by what TensorBoard's own reader finds.

namespace {

using e2e::at_iteration;
using e2e::at_point;
using e2e::contains;
using e2e::count_starting;
using e2e::Job;

constexpr char kBatches[] = "7,7,7,7,7,7,7,7,7,3";
const std::string kHooks =
    "    - {NAME: TensorboardLogHook, LOG_INTERVAL: 4}\n    - {NAME: JsonLogHook, LOG_INTERVAL: 4}\n";

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

/// What stands in one of two sorted lists alone.
std::string difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> alone;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(alone));
  std::string text;
  for (const std::string& line : alone) text += line.substr(0, 120) + "\n";
  return text;
}

/// Names of event files, sorted: the order of their processes.
std::vector<std::string> files(const Job& job) {
  std::vector<std::string> names;
  for (const std::string& name : job.names("work/tensorboard"))
    if (contains(name, "tfevents")) names.push_back("work/tensorboard/" + name);
  return names;
}

void check_same(const Job& undisturbed, const Job& other) {
  CHECK(difference(e2e::shown(other), e2e::shown(undisturbed)) == "");
  CHECK(other.lines("work/metrics.jsonl") == undisturbed.lines("work/metrics.jsonl"));
}

}  // namespace

TEST_CASE("TensorBoard reads every event and finds the values of the training and of JsonLogHook") {
  if (!e2e::have_python()) return;
  const Job job(e2e::recorded_job(kHooks));
  const e2e::RunResult run = job.run();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"lines", "work/tensorboard", "work/metrics.jsonl"},
        std::vector<std::string>{"losses", "work/tensorboard", "losses.txt", "4", kBatches}}) {
    const e2e::RunResult compared = e2e::event_files(job, arguments);
    INFO(compared.describe());
    CHECK(compared.exit_code == 0);
  }

  const std::vector<std::string> all = e2e::shown(job);
  // 30 iterations of training and 9 of evaluations in lines of 4; the learning rate is no mean.
  CHECK(count_starting(all, "scalar train/iter/loss ") == 7);
  CHECK(count_starting(all, "scalar train/iter/lr ") == 7);
  CHECK(count_starting(all, "scalar eval/iter/loss ") == 2);
  CHECK(count_starting(all, "scalar train/epoch/loss ") == 3);
  CHECK(count_starting(all, "scalar eval/epoch/acc@1 ") == 3);
  CHECK(has(all, "scalar train/iter/every 8 5.5"));     // of 4 5 6 7
  CHECK(has(all, "scalar train/iter/second 12 10.0"));  // of 9 and 11, which had it
  CHECK(has(all, "scalar train/epoch/second 2 15.0"));  // of 11 13 15 17 19
  CHECK(has(all, "scalar train/iter/nothing 4 nan"));
  // The last metrics are those of the run's report.
  double reported = e2e::json_number(run.last_line(), {"metrics", "eval", "loss"});
  std::string last;
  for (const std::string& line : all)
    if (line.starts_with("scalar eval/epoch/loss 3 ")) last = line.substr(line.rfind(' ') + 1);
  CHECK(std::stod(last) == doctest::Approx(reported).epsilon(1e-6));

  CHECK(has(all, "text config 0 \"yaml\""));
  CHECK(std::any_of(all.begin(), all.end(), [](const std::string& line) {
    return line.starts_with("hparams 0 ") && contains(line, "LEARNING_RATE=number:0.1") &&
           contains(line, "SOLVER.OPTIMIZER=string:SGD");
  }));
  CHECK(count_starting(all, "hparams end 30 1") == 1);  // success
  CHECK(std::any_of(all.begin(), all.end(), [](const std::string& line) {
    return line.starts_with("hparams experiment 30 ") && contains(line, "train/epoch/loss:1") &&
           contains(line, "eval/epoch/acc@1:2");
  }));
}

TEST_CASE("TensorBoard finds the pictures distributions numbers and texts that probes show") {
  if (!e2e::have_python()) return;
  const Job job(e2e::recorded_job(kHooks));
  job.run();
  const std::vector<std::string> all = e2e::shown(job);
  // Two gray pictures of 3 x 3 side by side, with 2 pixels around each.
  CHECK(count_starting(all, "image train/probe/pair/ramps 4 12x7 L ") == 1);
  std::string colors;  // 4 rows of 6, in iteration 7
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x)
      for (const int byte : {40 * x, 60 * y, 7}) {
        colors += "0123456789abcdef"[byte / 16];
        colors += "0123456789abcdef"[byte % 16];
      }
  CHECK(has(all, "image train/probe/colors 8 6x4 RGB " + colors));
  CHECK(count_starting(all, "image train/probe/colors ") == 7);
  CHECK(has(all, "scalar train/probe/temperature 8 7.5"));
  CHECK(has(all, "scalar train/probe/no number 8 nan"));
  CHECK(has(all, "text train/probe/note 8 \"iteration 7 <script>alert(1)</script>\\nsecond line\""));
  CHECK(has(all, "histogram train/probe/digits 8 4 3 3 [(0.5, 1.0), (1.5, 3.0)]"));  // of 0 1 1 1
  CHECK(count_starting(all, "histogram train/probe/noise 8 100 -5 833.5 [(-4.8") == 1);
  CHECK(count_starting(all, "tensor") == 0);
  // Of an evaluation what its last iteration showed, at the training iteration that it stands at.
  CHECK(has(all, "scalar eval/probe/temperature 20 5.5"));
  CHECK(count_starting(all, "image eval/probe/colors ") == 3);
}

TEST_CASE("event files have values every LOG_INTERVAL iterations alone and on the disk at once") {
  if (!e2e::have_python()) return;
  const Job job(e2e::recorded_job(kHooks));
  e2e::run_until_killed(job, 7);  // the second line is due in this iteration
  std::vector<std::string> all = e2e::shown(job);
  CHECK(count_starting(all, "scalar train/iter/loss ") == 2);
  CHECK(count_starting(all, "scalar train/iter/loss 4 ") == 1);
  CHECK(count_starting(all, "scalar train/iter/loss 8 ") == 1);

  const Job before(e2e::recorded_job(kHooks));
  e2e::run_until_killed(before, 6);
  all = e2e::shown(before);
  CHECK(count_starting(all, "scalar train/iter/loss ") == 1);
}

TEST_CASE("a LOG_INTERVAL of zero leaves the values of phases alone and INTERVAL overrides it") {
  if (!e2e::have_python()) return;
  const Job none(e2e::recorded_job("    - {NAME: TensorboardLogHook, LOG_INTERVAL: 4, INTERVAL: 0}\n"));
  none.run();
  const std::vector<std::string> all = e2e::shown(none);
  CHECK(count_starting(all, "scalar train/iter/") == 0);
  CHECK(count_starting(all, "image train/probe/") == 0);
  CHECK(count_starting(all, "scalar train/epoch/loss ") == 3);
  const Job five(e2e::recorded_job("    - {NAME: TensorboardLogHook, INTERVAL: 5}\n"));
  five.run();
  CHECK(count_starting(e2e::shown(five), "scalar train/iter/loss ") == 6);
}

TEST_CASE("a run stopped at any point and resumed has no step twice and the values of an undisturbed one") {
  if (!e2e::have_python()) return;
  const std::string config = e2e::recorded_job(kHooks);
  const Job undisturbed(config);
  undisturbed.run();
  const std::vector<std::vector<std::string>> places = {
      {at_iteration(12)},                  // between two lines
      {at_iteration(15)},                  // in a line's iteration
      at_point("eval.after_iter", 2, 1),   // an evaluation that runs again, after a line of its own
      at_point("eval.after_all_iter", 2),  // between an evaluation and the end of its epoch
      at_point("train.after_epoch", 2),
  };
  for (const std::vector<std::string>& place : places) {
    INFO(place.front());
    const Job stopped(config);
    stopped.run(place, 75);
    CHECK(count_starting(e2e::shown(stopped), "hparams end") == 0);
    stopped.resume();
    check_same(undisturbed, stopped);
  }
}

TEST_CASE("a run stopped again and again has no step twice and the values of an undisturbed one") {
  if (!e2e::have_python()) return;
  const std::string config = e2e::recorded_job(kHooks);
  const Job undisturbed(config), stopped(config);
  undisturbed.run();
  stopped.run({at_iteration(1)}, 75);
  stopped.resume({at_iteration(5)}, 75);
  stopped.resume(at_point("eval.after_iter", 1, 1), 75);
  stopped.resume(at_point("eval.after_iter", 1, 0), 75);
  stopped.resume({at_iteration(22)}, 75);
  stopped.resume();
  check_same(undisturbed, stopped);
  stopped.resume();  // there is nothing left to do, and so nothing to add
  check_same(undisturbed, stopped);
}

TEST_CASE("what a killed run wrote after its checkpoint is cut with a torn last record and written again") {
  if (!e2e::have_python()) return;
  const std::string config = e2e::recorded_job(kHooks);
  const Job undisturbed(config), killed(config);
  undisturbed.run();
  e2e::run_until_killed(killed, 16);  // the checkpoint is of iteration 10
  REQUIRE(files(killed).size() == 1);
  CHECK(count_starting(e2e::shown(killed), "scalar train/iter/loss 16 ") == 1);
  const std::string whole = killed.dir.read(files(killed).front());
  e2e::append(killed, files(killed).front(), whole.substr(0, 20));
  e2e::append(killed, "work/metrics.jsonl", "{\"mode\": \"train\", \"li");
  killed.resume({at_iteration(17)}, 75);
  killed.resume();
  CHECK(files(killed).size() == 3);
  check_same(undisturbed, killed);
}

TEST_CASE("a larger MAX_EPOCHS trains on with the same scalars and shows the new configuration") {
  if (!e2e::have_python()) return;
  const std::string constant = "SOLVER.LR_SCHEDULER=null", four = "SOLVER.MAX_EPOCHS=4";
  const std::string config = e2e::recorded_job(kHooks);
  const Job at_once(config), later(config);
  at_once.run({constant, four});
  later.run({constant});
  later.resume({constant, four});
  const auto scalars = [](const Job& job) {
    std::vector<std::string> lines = e2e::shown(job);
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("scalar "); });
    return lines;
  };
  CHECK(scalars(later) == scalars(at_once));
  const std::vector<std::string> all = e2e::shown(later);
  CHECK(count_starting(all, "text config ") == 2);
  CHECK(has(all, "text config 30 \"yaml\""));
  CHECK(count_starting(all, "hparams end ") == 1);
  CHECK(has(all, "hparams end 40 1"));
}

TEST_CASE("evaluations within an epoch of a training that MAX_STEPS limits stand at its iterations") {
  if (!e2e::have_python()) return;
  const std::string config =
      e2e::replaced(e2e::recorded_job(kHooks), "MAX_EPOCHS: 3", "MAX_STEPS: 25\n  EVAL_INTERVAL: 4");
  const Job undisturbed(config), stopped(config);
  undisturbed.run();
  const std::vector<std::string> all = e2e::shown(undisturbed);
  for (const char* step : {"4", "8", "12", "16", "20", "24", "25"})
    CHECK(count_starting(all, std::string("scalar eval/epoch/loss ") + step + " ") == 1);
  for (const char* step : {"10", "20", "25"})
    CHECK(count_starting(all, std::string("scalar train/epoch/loss ") + step + " ") == 1);
  CHECK(count_starting(all, "scalar eval/epoch/loss ") == 7);
  CHECK(count_starting(all, "scalar train/epoch/loss ") == 3);
  stopped.run({at_iteration(5)}, 75);
  stopped.resume(at_point("eval.after_iter", 2, 1), 75);
  stopped.resume();
  check_same(undisturbed, stopped);
}

TEST_CASE("hooks of several lists share the one event file of their folder") {
  if (!e2e::have_python()) return;
  const std::string hook = "{NAME: TensorboardLogHook, LOG_INTERVAL: 4}";
  const Job one(e2e::recorded_job("    - " + hook + "\n"));
  const Job two(e2e::replaced(e2e::recorded_job(""), "TRAIN_HOOKS: [",
                              "EVAL_HOOKS: [" + hook + "]\n  TRAIN_HOOKS: [" + hook + ", "));
  one.run();
  two.run({at_iteration(12)}, 75);
  two.resume({at_iteration(25)}, 75);
  two.resume();
  CHECK(files(two).size() == 3);  // one for each process
  CHECK(difference(e2e::shown(two), e2e::shown(one)) == "");
}

TEST_CASE("two hooks of one list write each step once") {
  if (!e2e::have_python()) return;
  const std::string hook = "    - {NAME: TensorboardLogHook, LOG_INTERVAL: 4}\n    - {NAME: JsonLogHook}\n";
  const Job one(e2e::recorded_job(hook)), two(e2e::recorded_job(hook + hook));
  one.run();
  two.run();
  check_same(one, two);
}

TEST_CASE("a training that starts afresh moves earlier event files aside where WORK_DIR does not") {
  if (!e2e::have_python()) return;
  const Job job(e2e::recorded_job("    - {NAME: TensorboardLogHook, LOG_INTERVAL: 4, LOG_DIR: board}\n"));
  job.run({"SOLVER.MAX_EPOCHS=1"});
  const std::vector<std::string> first = e2e::shown(job, "board");
  job.run({"SOLVER.MAX_EPOCHS=2"});
  CHECK(e2e::shown(job, "board/old-1") == first);
  CHECK(count_starting(e2e::shown(job, "board"), "scalar train/epoch/loss ") == 2);
}

TEST_CASE("an evaluation alone leaves the event files and lines of the training as they are") {
  if (!e2e::have_python()) return;
  const Job job(e2e::recorded_job(kHooks));
  job.run();
  const std::vector<std::string> before = files(job), lines = job.lines("work/metrics.jsonl");
  const std::string content = job.dir.read(before.front());
  job.run({"SOLVER.TRAIN_DATA=null", "SOLVER.RESUME_FROM=work/checkpoints/last"});
  CHECK(job.dir.read(before.front()) == content);
  CHECK(files(job).size() == 2);
  std::vector<std::string> after = job.lines("work/metrics.jsonl");
  REQUIRE(after.size() == lines.size() + 1);
  CHECK(contains(after.back(), "{\"mode\": \"eval\", \"line\": \"epoch\", \"epoch\": 0, "));
  // And the training that goes on keeps them.
  job.resume({"SOLVER.MAX_EPOCHS=4"});
  CHECK(files(job).size() == 3);
  const std::vector<std::string> all = job.lines("work/metrics.jsonl");
  CHECK(std::count(all.begin(), all.end(), after.back()) == 1);
  CHECK(std::vector<std::string>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(lines.size())) == lines);
}

TEST_CASE("a byte of an event file that changed is seen by the reader that these tests rely on") {
  if (!e2e::have_python()) return;
  const Job job(e2e::recorded_job(kHooks));
  job.run({"SOLVER.MAX_EPOCHS=1"});
  const std::string file = files(job).front(), good = job.dir.read(file);
  for (const double share : {0.1, 0.5, 0.9}) {
    std::string bad = good;
    bad[static_cast<std::size_t>(share * static_cast<double>(bad.size()))] ^= 1;
    job.dir.write(file, bad);
    CHECK(e2e::event_files(job, {"dump", "work/tensorboard"}).exit_code != 0);
  }
  job.dir.write(file, good);
  CHECK(e2e::event_files(job, {"dump", "work/tensorboard"}).exit_code == 0);
  e2e::append(job, "work/tensorboard/zz.tfevents.zz", good);  // every step twice
  CHECK(contains(e2e::event_files(job, {"dump", "work/tensorboard"}).err, "is there twice"));
}

TEST_CASE("a dry run writes no event file where LOG_DIR says and a LOG_DIR that is a file is named") {
  const Job job(e2e::recorded_job("    - {NAME: TensorboardLogHook, LOG_DIR: board}\n"));
  job.run({"--dry-run"});
  CHECK_FALSE(job.dir.has("board"));
  const e2e::RunResult file = job.run({"SOLVER.HOOKS[TensorboardLogHook].LOG_DIR=job.yaml"}, 1);
  CHECK(contains(file.err, "job.yaml"));
  const e2e::RunResult remote = job.run({"SOLVER.HOOKS[TensorboardLogHook].LOG_DIR=oss://bucket/board"}, 2);
  CHECK(contains(remote.err, "LOG_DIR must be a folder on this machine"));
}
