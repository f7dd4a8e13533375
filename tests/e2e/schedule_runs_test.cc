#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/resume.h"

// Schedules in runs, stopped ones among them. That their rates are PyTorch's is in tests/parity.

namespace {

using e2e::Job;
using e2e::Training;

std::string listed(const std::string& values) {
  return "SOLVER.METRICS=[{NAME: test/ListedMetric, VALUES: [" + values + "]}]";
}
std::string plateau(const std::string& keys) { return "SOLVER.LR_SCHEDULER={NAME: ReduceLROnPlateau" + keys + "}"; }
const std::string kRates = "SOLVER.HOOKS=[{NAME: test/Trace, FILE: trace.txt, ONLY: [before_step]}]";

/// The learning rate of each epoch, of one batch each.
std::vector<std::string> rates(const std::vector<std::string>& lines) {
  std::vector<std::string> rates;
  for (const std::string& line : lines) rates.push_back(line.substr(line.find("lr=") + 3));
  return rates;
}

std::vector<std::string> rates_with(const std::string& keys, const std::string& values, int64_t epochs) {
  const Training run({"SOLVER.MAX_EPOCHS=" + std::to_string(epochs), "SOLVER.LIMIT_TRAIN_BATCHES=1", e2e::kEvalData,
                      listed(values), plateau(keys), kRates});
  return rates(run.lines("trace.txt"));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using Rates = std::vector<std::string>;

}  // namespace

TEST_CASE("ReduceLROnPlateau follows MODE and lowers the rate once PATIENCE is over") {
  const std::string values = "1, 2, 3, 3, 3";
  CHECK(rates_with(", METRIC: listed, PATIENCE: 1, FACTOR: 0.5", values, 5) ==
        Rates{"0.1", "0.1", "0.1", "0.05", "0.05"});
  CHECK(rates_with(", METRIC: listed, PATIENCE: 1, FACTOR: 0.5, MODE: max", values, 6) ==
        Rates{"0.1", "0.1", "0.1", "0.1", "0.1", "0.05"});
}

TEST_CASE("ReduceLROnPlateau leaves an evaluation out that gives NaN and warns of it") {
  const Training run({"SOLVER.MAX_EPOCHS=6", "SOLVER.LIMIT_TRAIN_BATCHES=1", e2e::kEvalData,
                      listed("1, nan, nan, 1, nan, 1"), plateau(", METRIC: listed, PATIENCE: 1, FACTOR: 0.5"), kRates});
  CHECK(rates(run.lines("trace.txt")) == Rates{"0.1", "0.1", "0.1", "0.1", "0.1", "0.1"});
  CHECK(contains(run.result.err, "ReduceLROnPlateau: listed is nan; this evaluation does not count"));
  // The last evaluation was the second without a better value.
  CHECK(contains(run.result.err, "listed was not better than 1.0000 in 2 evaluations: learning rate 0.1000 -> 0.0500"));
}

TEST_CASE("ReduceLROnPlateau looks at the loss of evaluations by default and not at tests") {
  const Training run({"SOLVER.MAX_EPOCHS=1", e2e::kEvalData, e2e::kTestData, listed("1, 2"),
                      plateau(", METRIC: listed, PATIENCE: 0")});
  CHECK(contains(run.result.err, "listed 2.0000"));  // the test's
  CHECK_FALSE(contains(run.result.err, "was not better"));
  // Nothing is better than the first loss by a thousand.
  const Rates falling = rates_with(", PATIENCE: 0, THRESHOLD: 1000, THRESHOLD_MODE: abs", "1", 3);
  CHECK(std::stod(falling[2]) == doctest::Approx(0.01).epsilon(1e-12));
}

TEST_CASE("ReduceLROnPlateau names what evaluations have where METRIC is none of it") {
  const Training run({e2e::kEvalData, plateau(", METRIC: acc1")}, 1);
  CHECK(contains(run.result.err, "METRIC is acc1, but the evaluation has none of this name; did you mean acc@1?"));
  CHECK(contains(run.result.err, "It has: loss, acc@1"));
}

TEST_CASE("ReduceLROnPlateau goes on with what it had counted and ends in the same bytes") {
  const std::vector<std::string> changes = {listed("3, 2, 2, 2, 2, 2, 2, 2"),
                                            plateau(", METRIC: listed, PATIENCE: 1, FACTOR: 0.3, COOLDOWN: 1"),
                                            "SOLVER.MAX_EPOCHS=8",
                                            "SOLVER.LIMIT_TRAIN_BATCHES=4",
                                            "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}]",
                                            "SOLVER.HOOKS[test/Trace].ONLY=[before_step]"};
  Job undisturbed, stopped;
  undisturbed.run(changes);
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), changes.begin(), changes.end());
    return more;
  };
  stopped.run(with({e2e::at_iteration(13)}), 75);
  stopped.resume(with(e2e::at_point("eval.after_iter", 4, 1)), 75);  // an evaluation that is not to count twice
  stopped.resume(with({e2e::at_iteration(17)}), 75);
  stopped.resume(changes);
  e2e::check_same_training(undisturbed, stopped);
  const Rates expected = rates(undisturbed.lines("trace.txt"));
  CHECK(rates(stopped.lines("trace.txt")) == expected);
  REQUIRE(expected.size() == 32);
  CHECK(expected.front() == "0.1");
  CHECK(std::stod(expected.back()) == doctest::Approx(0.009));
}

TEST_CASE("LinoPolyLR of a resumed run goes on from where the run stood") {
  const std::vector<std::string> changes = {"SOLVER.LR_SCHEDULER={NAME: LinoPolyLR, END_EPOCH: 4, POWER: 2}",
                                            "SOLVER.MAX_EPOCHS=4", "SOLVER.LIMIT_TRAIN_BATCHES=1",
                                            "SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}]",
                                            "SOLVER.HOOKS[test/Trace].ONLY=[before_step]"};
  Job job;
  std::vector<std::string> first = changes;
  first.push_back(e2e::at_iteration(1));
  job.run(first, 75);
  job.resume(changes);
  const Rates found = rates(job.lines("trace.txt"));
  REQUIRE(found.size() == 4);
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    const double left = 1 - i / 4.0;
    CHECK(std::stod(found[static_cast<std::size_t>(i)]) == doctest::Approx(0.1 * left * left).epsilon(1e-12));
  }
  // SCEPTER's key, which it ignored there.
  CHECK(contains(job.run({changes[0], "SOLVER.LR_SCHEDULER.LAST_EPOCH=3"}, 2).err, "LAST_EPOCH"));
}

TEST_CASE("CyclicLR needs an optimizer with a momentum unless it leaves that alone") {
  const std::string schedule = "SOLVER.LR_SCHEDULER={NAME: CyclicLR, MAX_LR: 0.2";
  const std::string adagrad = "SOLVER.OPTIMIZER={NAME: Adagrad, LEARNING_RATE: 0.1}";
  const Training refused({schedule + "}", adagrad}, 2);
  CHECK(contains(refused.result.err, "CYCLE_MOMENTUM: false"));
  const Training taken({schedule + ", CYCLE_MOMENTUM: false, STEP_SIZE_UP: 4}", adagrad, kRates});
  const Rates found = rates(taken.lines("trace.txt"));
  REQUIRE(found.size() == 20);
  CHECK(std::stod(found[0]) == 0.1);
  CHECK(std::stod(found[2]) == doctest::Approx(0.15).epsilon(1e-12));
  CHECK(std::stod(found[4]) == doctest::Approx(0.2).epsilon(1e-12));
  CHECK(std::stod(found[8]) == doctest::Approx(0.1).epsilon(1e-12));
}

TEST_CASE("LambdaLR takes an expression from the configuration and refuses one that cannot be read by its line") {
  const Training run({"SOLVER.LR_SCHEDULER={NAME: LambdaLR, LR_LAMBDA: 0.5 ** epoch}", kRates});
  const Rates found = rates(run.lines("trace.txt"));
  REQUIRE(found.size() == 20);
  CHECK(found[9] == "0.1");
  CHECK(found[10] == "0.05");
  const Training refused({"SOLVER.LR_SCHEDULER={NAME: LambdaLR, LR_LAMBDA: 0.5 ** epochs}"}, 2);
  CHECK(contains(refused.result.err, "LR_LAMBDA '0.5 ** epochs' cannot be read"));
  const Training infinite({"SOLVER.LR_SCHEDULER={NAME: LambdaLR, LR_LAMBDA: 1 / (step - 3)}"}, 1);
  CHECK(contains(infinite.result.err, "LR_LAMBDA '1 / (step - 3)' is"));
}
