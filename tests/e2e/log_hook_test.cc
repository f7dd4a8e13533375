#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <regex>
#include <string>
#include <vector>

#include "e2e/recorders.h"

// LogHook's lines.

namespace {

using e2e::at_iteration;
using e2e::contains;
using e2e::Job;

const std::string kHook = "    - {NAME: LogHook, LOG_INTERVAL: 4}\n";

/// Of one mode: from the place to the bar, where measured times begin.
std::vector<std::string> lines_of_mode(const e2e::RunResult& run, const std::string& mode) {
  std::vector<std::string> lines;
  for (const std::string& line : e2e::lines_of(run.err)) {
    const std::size_t begin = line.find("epoch "), bar = line.find(" | ");
    if (begin == std::string::npos || bar == std::string::npos || !contains(line, " " + mode + " [")) continue;
    lines.push_back(line.substr(begin, bar - begin));
  }
  return lines;
}

/// The mean that a line should show, over the traced iterations from `begin` to before `end`.
double mean_loss(const Job& job, int64_t begin, int64_t end) {
  double sum = 0, weight = 0;
  for (const auto& [iteration, bits] : job.losses()) {
    if (iteration < begin || iteration >= end) continue;
    const auto raw = static_cast<uint32_t>(std::stoul(bits, nullptr, 16));
    float loss = 0;
    std::memcpy(&loss, &raw, sizeof loss);
    const double size = iteration % 10 == 9 ? 3 : 7;
    sum += loss * size;
    weight += size;
  }
  return sum / weight;
}

std::string shown(double window, double phase) {
  char text[64];
  std::snprintf(text, sizeof text, " loss %.4f (%.4f)", window, phase);
  return text;
}

}  // namespace

TEST_CASE("a log line has the means weighted by samples since the last line and since the phase began") {
  const Job job(e2e::recorded_job(kHook));
  const std::vector<std::string> lines = lines_of_mode(job.run(), "train");
  REQUIRE(lines.size() == 3 * 3);  // of 4, 4 and the rest
  CHECK(lines[0].starts_with("epoch 1/3 train [ 4/10]" + shown(mean_loss(job, 0, 4), mean_loss(job, 0, 4))));
  CHECK(lines[1].starts_with("epoch 1/3 train [ 8/10]" + shown(mean_loss(job, 4, 8), mean_loss(job, 0, 8))));
  CHECK(lines[5].starts_with("epoch 2/3 train [10/10]" + shown(mean_loss(job, 18, 20), mean_loss(job, 10, 20))));
  CHECK(contains(lines[0], " lr 0.0001"));
}

TEST_CASE("a value that some iterations lack is averaged over those that have it") {
  const Job job(e2e::recorded_job(kHook));
  const std::vector<std::string> lines = lines_of_mode(job.run(), "train");
  CHECK(contains(lines.at(1), " every 5.5000 (3.5000)"));   // of 4 to 7, of 0 to 7
  CHECK(contains(lines.at(1), " second 6.0000 (4.0000)"));  // of 5 7, of 1 3 5 7
  CHECK(contains(lines.at(1), " nothing nan (nan)"));
}

TEST_CASE("a log line ends with throughput and waiting and elapsed time and the time left of all training") {
  const Job job(e2e::recorded_job(kHook));
  const std::string log = job.run().err;
  const std::string measured = R"( \| \d+ samples/s, data \d+ %, \d+:\d\d:\d\d elapsed)";
  CHECK(std::regex_search(
      log, std::regex(R"(epoch 2/3 train \[ 4/10\] .* lr [0-9.e-]+)" + measured + R"(, eta \d+:\d\d:\d\d\n)")));
  CHECK(std::regex_search(log, std::regex(R"(epoch 3/3 train \[10/10\] .*, eta 0:00:00\n)")));
  CHECK(std::regex_search(log, std::regex(R"(epoch 1/3 eval \[3/3\] .*)" + measured + R"(\n)")));
}

TEST_CASE("LogHook has another name for LOG_INTERVAL and with zero the line at the end of phases alone") {
  const Job job(e2e::recorded_job(kHook));
  const std::string interval = "SOLVER.HOOKS[LogHook].INTERVAL=";
  CHECK(lines_of_mode(job.run({interval + "5"}), "train").size() == 6);
  for (const char* off : {"0", "-3"}) {
    const e2e::RunResult run = job.run({interval + off});
    CHECK(lines_of_mode(run, "train").size() == 3);
    CHECK(lines_of_mode(run, "eval").size() == 3);
  }
}

TEST_CASE("a log line of a training that MAX_STEPS limits counts the iterations of the whole run") {
  const Job job(e2e::replaced(e2e::recorded_job(kHook), "MAX_EPOCHS: 3", "MAX_STEPS: 25"));
  const std::vector<std::string> lines = lines_of_mode(job.run(), "train");
  REQUIRE(lines.size() >= 7);
  CHECK(lines[0].starts_with("epoch 1 train [ 4/25] "));
  CHECK(lines.back().starts_with("epoch 3 train [25/25] "));
}

TEST_CASE("SHOW_GPU_MEM on the CPU says once that there is nothing to show") {
  const Job job(e2e::recorded_job("    - {NAME: LogHook, LOG_INTERVAL: 4, SHOW_GPU_MEM: true}\n"));
  const std::string log = job.run().err;
  const std::size_t first = log.find("SHOW_GPU_MEM has nothing to show");
  REQUIRE(first != std::string::npos);
  CHECK(log.find("SHOW_GPU_MEM has nothing to show", first + 1) == std::string::npos);
  CHECK_FALSE(contains(log, ", mem "));
}

TEST_CASE("the log lines of a resumed run have the means of an undisturbed one") {
  const std::string config = e2e::recorded_job(kHook);
  const Job undisturbed(config), stopped(config);
  const e2e::RunResult once = undisturbed.run();
  std::vector<e2e::RunResult> runs;
  runs.push_back(stopped.run({at_iteration(1)}, 75));
  runs.push_back(stopped.resume({at_iteration(9)}, 75));
  runs.push_back(stopped.resume({at_iteration(13)}, 75));
  runs.push_back(stopped.resume());
  for (const char* mode : {"train", "eval"}) {
    std::vector<std::string> together;
    for (const e2e::RunResult& run : runs)
      for (const std::string& line : lines_of_mode(run, mode)) together.push_back(line);
    std::vector<std::string> expected;
    for (const std::string& line : lines_of_mode(once, mode)) expected.push_back(line);
    CHECK(together == expected);
  }
}
