#include <map>
#include <sstream>

#include "hooks/odd_job.h"

// Which samples each epoch has, by DistSamplerHook.

namespace {

using e2e::Job;
using e2e::operator+;
using e2e::with_hook;
using Ids = std::vector<int64_t>;

std::vector<std::string> interval(int64_t epochs) {
  return {with_hook("{NAME: test/IdTrace, FILE: ids.txt}, {NAME: DistSamplerHook, INTERVAL: " + std::to_string(epochs) +
                    "}"),
          "SOLVER.MAX_EPOCHS=4"};
}

/// By epoch, in the order in which they came. What was trained twice must have been the same.
std::map<int64_t, Ids> ids_of(const Job& job) {
  std::map<int64_t, std::pair<int64_t, Ids>> iterations;
  for (const std::string& line : job.lines("ids.txt")) {
    std::istringstream in(line);
    int64_t epoch = 0, iteration = 0;
    in >> epoch >> iteration;
    Ids ids;
    for (int64_t id; in >> id;) ids.push_back(id);
    const auto [at, fresh] = iterations.emplace(iteration, std::make_pair(epoch, ids));
    if (!fresh) CHECK(at->second.second == ids);
  }
  std::map<int64_t, Ids> epochs;
  for (const auto& [iteration, item] : iterations)
    epochs[item.first].insert(epochs[item.first].end(), item.second.begin(), item.second.end());
  return epochs;
}

}  // namespace

TEST_CASE("the order of the samples changes with every epoch unless DistSamplerHook says otherwise") {
  Job without(e2e::kOddJob), one(e2e::kOddJob), two(e2e::kOddJob);
  without.run({with_hook("{NAME: test/IdTrace, FILE: ids.txt}"), "SOLVER.MAX_EPOCHS=4"});
  one.run(interval(1));
  two.run(interval(2));
  auto plain = ids_of(without), each = ids_of(one), pairs = ids_of(two);
  REQUIRE(plain.size() == 4);
  for (int64_t epoch = 1; epoch <= 4; ++epoch) CHECK(plain[epoch].size() == 20);
  for (int64_t epoch = 2; epoch <= 4; ++epoch) CHECK(plain[epoch] != plain[epoch - 1]);
  CHECK(each == plain);
  CHECK(pairs[1] == plain[1]);
  CHECK(pairs[2] == pairs[1]);
  CHECK(pairs[3] != pairs[1]);
  CHECK(pairs[4] == pairs[3]);
}

TEST_CASE("a run that draws its data every second epoch goes on with the same samples") {
  Job undisturbed(e2e::kOddJob), stopped(e2e::kOddJob);
  undisturbed.run(interval(2));
  stopped.run(interval(2) + std::vector{e2e::at_iteration(8)}, 75);         // within the second epoch
  stopped.resume(interval(2) + e2e::at_point("train.after_epoch", 3), 75);  // after the third
  stopped.resume(interval(2));
  CHECK(ids_of(stopped) == ids_of(undisturbed));
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("an interval of DistSamplerHook below one epoch is refused") {
  Job job(e2e::kOddJob);
  CHECK(e2e::contains(job.run(interval(0), 2).err, "INTERVAL"));
}
