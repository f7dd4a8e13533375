#include <algorithm>

#include "regress/trials.h"

// Evaluations that a resumed run made later, twice, not at all, or of fewer batches.

namespace {

using namespace trials;
using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;

std::vector<std::string> evaluation_lines(const Job& job) {
  std::vector<std::string> lines = job.lines("trace.txt");
  std::erase_if(lines,
                [](const std::string& line) { return !contains(line, " eval ") && !contains(line, "evaluated"); });
  return lines;
}

}  // namespace

TEST_CASE("evaluations come after the same iterations also where the run was stopped between them") {
  const Changes loop = {"SOLVER.MAX_EPOCHS=null",     "SOLVER.MAX_STEPS=23", "SOLVER.EVAL_INTERVAL=4", windows_of(1),
                        kCheckpoint + "INTERVAL=100", traced("evaluated")};
  Job undisturbed, stopped;
  undisturbed.run(loop);
  // Between evaluations; in the iteration that one follows; and right after one.
  run_with_stops(stopped, loop,
                 {{at_iteration(1)}, {at_iteration(7)}, {at_iteration(9)}, {at_iteration(15)}, {at_iteration(16)}});
  REQUIRE(undisturbed.lines("trace.txt").size() == 6);  // after 4, 8, 12, 16, 20 and the end
  CHECK(stopped.lines("trace.txt") == undisturbed.lines("trace.txt"));
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("a run stopped around its evaluations makes each once and of all its batches") {
  const Changes changes = {"SOLVER.MAX_EPOCHS=3", traced("before_epoch, after_iter, after_epoch, evaluated")};
  for (const std::string point : {"train.after_iter", "eval.evaluated", "train.after_epoch", "train.before_epoch"}) {
    INFO(point);
    Job undisturbed, stopped;
    undisturbed.run(changes);
    run_with_stops(stopped, changes, {at_point(point, 1), at_point(point, 2)});
    const std::vector<std::string> lines = evaluation_lines(undisturbed);
    CHECK(std::count_if(lines.begin(), lines.end(),
                        [](const std::string& line) { return line.starts_with("after_iter eval"); }) == 9);
    CHECK(evaluation_lines(stopped) == lines);
    e2e::check_same_counts(undisturbed, stopped);  // with the losses of evaluations
  }
}
