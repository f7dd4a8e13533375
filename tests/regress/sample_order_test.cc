#include <signal.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "regress/trials.h"

// Loaders that repeated, skipped or shuffled otherwise the samples of a resumed run.

namespace {

using namespace trials;
using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;

/// Each iteration's samples. What ran twice must have had the same.
std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> samples(const Job& job) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> all;
  for (const std::string& line : job.lines("ids.txt")) {
    std::istringstream in(line);
    int64_t epoch = 0, iteration = 0;
    in >> epoch >> iteration;
    std::vector<int64_t> ids;
    for (int64_t id; in >> id;) ids.push_back(id);
    const auto [at, first] = all.emplace(std::pair{epoch, iteration}, ids);
    INFO(line);
    if (!first) CHECK(at->second == ids);
  }
  return all;
}

std::vector<int64_t> samples_of(const Job& job, int64_t epoch) {
  std::vector<int64_t> all;
  for (const auto& [place, ids] : samples(job))
    if (place.first == epoch) all.insert(all.end(), ids.begin(), ids.end());
  return all;
}

/// That an epoch has each sample once, and that none has the order of another.
void check_epochs(const Job& job, int64_t epochs, int64_t size) {
  std::vector<int64_t> in_order(static_cast<std::size_t>(size));
  std::iota(in_order.begin(), in_order.end(), 0);
  std::set<std::vector<int64_t>> orders = {in_order};
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    std::vector<int64_t> ids = samples_of(job, epoch);
    orders.insert(ids);
    std::sort(ids.begin(), ids.end());
    CHECK(ids == in_order);
  }
  CHECK(static_cast<int64_t>(orders.size()) == epochs + 1);
}

const std::string kIds = job_with("{NAME: test/IdTrace, FILE: ids.txt}");

}  // namespace

TEST_CASE("with windows of four batches the samples after a stop within an epoch are those that come next") {
  const Changes changes = {"SOLVER.MAX_EPOCHS=2", windows_of(4)};
  Job undisturbed(kIds), stopped(kIds);
  undisturbed.run(changes);
  run_with_stops(stopped, changes, {{at_iteration(2)}, {at_iteration(5)}, {at_iteration(15)}});
  // In the order in which they came: none twice, none missing.
  CHECK(stopped.lines("ids.txt") == undisturbed.lines("ids.txt"));
  check_epochs(undisturbed, 2, 66);
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("a run killed in any iteration of three epochs sees the samples of one that was not") {
  const Changes changes = {
      "SOLVER.MAX_EPOCHS=3",
      "SOLVER.TRAIN_DATA.SIZE=26",  // 4 batches of 7, the last one short
      "SOLVER.EVAL_DATA=null",        "SOLVER.METRICS=[]", windows_of(1), kCheckpoint + "INTERVAL=1 iters",
      kCheckpoint + "SAVE_BEST=false"};
  Job undisturbed(kIds);
  undisturbed.run(changes);
  REQUIRE(samples(undisturbed).size() == 12);
  check_epochs(undisturbed, 3, 26);
  for (int64_t k = 0; k < 12; ++k) {
    INFO("killed in iteration " << k);
    Job killed(kIds);
    const e2e::RunResult result = e2e::run_gantry(
        killed.command(changes + Changes{at_iteration(k), "SOLVER.HOOKS[test/RaiseSignal].SIGNAL=KILL"}),
        killed.dir.path());
    REQUIRE(result.signal == SIGKILL);
    killed.resume(changes);
    CHECK(killed.lines("ids.txt").size() == 13);  // that iteration alone ran twice
    CHECK(samples(killed) == samples(undisturbed));
    e2e::check_same_training(undisturbed, killed);
  }
}

TEST_CASE("every evaluation has the same samples in the same order whether or not the run was stopped") {
  const std::string job = job_with("{NAME: test/IdTrace, FILE: ids.txt, OF: eval}");
  const Changes changes = {"SOLVER.MAX_EPOCHS=3", "SOLVER.EVAL_DATA.SHUFFLE=true"};
  Job undisturbed(job), stopped(job);
  undisturbed.run(changes);
  run_with_stops(
      stopped, changes,
      {{at_iteration(4)}, at_point("eval.after_iter", 1, 1), at_point("eval.evaluated", 2), {at_iteration(23)}});
  REQUIRE(samples(undisturbed).size() == 9);
  for (int64_t epoch = 1; epoch <= 3; ++epoch) CHECK(samples_of(undisturbed, epoch).size() == 12);
  CHECK(samples(stopped) == samples(undisturbed));
  CHECK(stopped.lines("ids.txt").size() == 9 + 2);  // of the evaluation that was cut short
  e2e::check_same_training(undisturbed, stopped);
}
