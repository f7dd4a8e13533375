#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <vector>

#include "e2e/resume.h"

// ProgressHook, on a pipe and on a terminal.

namespace {

using e2e::Job;
using e2e::RunResult;

std::string job_with(const std::string& hook) {
  return e2e::replaced(e2e::kJob, "    - {NAME: test/RaiseSignal, SIGNAL: TERM}\n",
                       "    - {NAME: test/RaiseSignal, SIGNAL: TERM}\n    - " + hook + "\n");
}

/// "train 40 % (4/10), 123 iters/s, 0:07 left"
struct Line {
  std::string mode;
  int percent = 0, done = 0, all = 0;
  int seconds_left = -1;  ///< -1: not said
};

std::vector<Line> progress_lines(const std::string& text) {
  static const std::regex pattern(R"((\w+) (\d+) % \((\d+)/(\d+)\)(?:, [\d.]+ iters/s)?(?:, (\d+):(\d\d) left)?)");
  std::vector<Line> lines;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    const auto number = [&](int group) { return std::stoi((*at)[group].str()); };
    lines.push_back({(*at)[1].str(), number(2), number(3), number(4)});
    if ((*at)[5].matched) lines.back().seconds_left = 60 * number(5) + number(6);
  }
  return lines;
}

const std::string kShort = "SOLVER.MAX_EPOCHS=2";
const std::string kEveryIteration = "{NAME: ProgressHook, LINE_SECONDS: 0.000001}";

}  // namespace

TEST_CASE("ProgressHook on a pipe prints how far each phase is") {
  const Job job(job_with(kEveryIteration));
  const RunResult result = job.run({kShort});
  const std::vector<Line> lines = progress_lines(result.err);
  INFO(result.err);
  REQUIRE(lines.size() == 2 * (10 + 3));
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(lines[i].mode == "train");
    CHECK(lines[i].all == 10);
    CHECK(lines[i].done == static_cast<int>(i) + 1);
    CHECK(lines[i].percent == 10 * (static_cast<int>(i) + 1));
    CHECK((lines[i].seconds_left >= 0) == (i > 0));
  }
  CHECK(lines[10].mode == "eval");
  CHECK(lines[10].percent == 33);
  CHECK(result.err.find("epoch 2/2 train 10 %") != std::string::npos);
  CHECK(result.err.find('\r') == std::string::npos);
}

TEST_CASE("ProgressHook on a pipe prints nothing before a line is due") {
  const Job job(job_with("{NAME: ProgressHook}"));
  CHECK(progress_lines(job.run({kShort}).err).empty());
}

TEST_CASE("the time left after a resume comes from the iterations of the resumed process") {
  const Job job(job_with(kEveryIteration));
  const std::vector<std::string> slow = {
      "SOLVER.TRAIN_DATA={NAME: test/SlowImages, SIZE: 20, MS: 25, BATCH_SIZE: 2, NUM_WORKERS: 0}",
      "SOLVER.MAX_EPOCHS=40"};
  const auto until = [&](int64_t iteration) {
    std::vector<std::string> changes = slow;
    changes.push_back(e2e::at_iteration(iteration));
    return changes;
  };
  job.run(until(20), 75);
  const RunResult resumed = job.resume(until(24), 75);
  INFO(resumed.err);
  const std::vector<Line> lines = progress_lines(resumed.err);
  REQUIRE(lines.size() >= 2);
  CHECK(lines[0].done == 4);
  CHECK(lines[0].seconds_left == -1);
  // 375 iterations of 50 ms and more are left.
  CHECK(lines[1].seconds_left >= 18);
}

TEST_CASE("ProgressHook on a terminal draws a bar and leaves nothing of it") {
  const Job job(job_with("{NAME: ProgressHook, REFRESH_SECONDS: 0.000001, LINE_SECONDS: 0.000001}"));
  std::string command = GANTRY_BINARY;
  for (const std::string& argument : job.command({kShort})) command += " '" + argument + "'";
  e2e::RunOptions options;
  options.env["TERM"] = "xterm";
  const RunResult result = e2e::run_program({"/usr/bin/script", "-qec", command, "/dev/null"}, job.dir.path(), options);
  INFO(result.describe());
  REQUIRE(result.exit_code == 0);
  CHECK(progress_lines(result.out).empty());
  CHECK(result.out.find("epoch 1/2 train [######..............]  30 % 3/10, ") != std::string::npos);
  // Left standing, the last bar of a phase would be drawn anew below every line that follows.
  const std::string last = "epoch 2/2 eval [####################] 100 % 3/3, ";
  REQUIRE(result.out.find(last) != std::string::npos);
  CHECK(result.out.find(last) == result.out.rfind(last));
  CHECK(result.out.find("\r\x1b[K", result.out.find(last)) < result.out.find('\n', result.out.find(last)));
  CHECK(job.dir.read("work/log.txt").find("##") == std::string::npos);
}
