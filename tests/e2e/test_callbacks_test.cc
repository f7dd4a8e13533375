#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gantry/checkpoint.h>
#include <gantry/recording.h>
#include <gantry/safetensors.h>

#include <cmath>
#include <map>
#include <set>

#include "e2e/recorded.h"

// What the test callbacks record is what there was. test_callbacks_stops_test.cc has the interruptions.

namespace {

using e2e::Job;
using e2e::recorded;
using e2e::RecordedEntry;

using Entries = std::vector<RecordedEntry>;

const std::string kOneEpoch = "SOLVER.MAX_EPOCHS=1";
const std::string kTwoEpochs = "SOLVER.MAX_EPOCHS=2";
const std::string kWindow = "SOLVER.TRAIN_HOOKS[BackwardHook].ACCUMULATE_STEP=";

/// Training iterations done before each entry.
std::vector<int64_t> iterations(const Entries& entries) {
  std::vector<int64_t> all;
  for (const RecordedEntry& entry : entries) all.push_back(entry.iteration);
  return all;
}

std::vector<double> numbers(const Entries& entries, const std::string& field) {
  std::vector<double> all;
  for (const RecordedEntry& entry : entries) all.push_back(entry.value(field).number());
  return all;
}

std::vector<std::string> points(const Entries& entries) {
  std::vector<std::string> all;
  for (const RecordedEntry& entry : entries) all.push_back(entry.mode + " " + entry.values.front().text);
  return all;
}

/// The first entry that was recorded where so many iterations were done.
const gantry::Recording::Entry& entry_at(const gantry::Recording& recording, int64_t iteration) {
  for (const gantry::Recording::Entry& entry : recording.entries)
    if (entry.iteration == iteration) return entry;
  FAIL(recording.path << " has no entry of iteration " << iteration);
  return recording.entries.front();
}

/// Every leaf under `prefix` was recorded whole, under the path without it, and nothing else was.
void check_same(const gantry::Recording& recording, const gantry::Recording::Entry& entry, const gantry::State& state,
                const std::set<std::string>& left_out = {}) {
  std::map<std::string, at::Tensor> values;
  for (const gantry::Recording::Value& value : entry.values)
    if (!left_out.contains(value.field)) values[value.field] = recording.whole(value);
  std::size_t leaves = 0;
  for (const gantry::State::Leaf& leaf : state.leaves()) {
    if (left_out.contains(leaf.path)) continue;
    ++leaves;
    INFO(leaf.path);
    REQUIRE(values.contains(leaf.path));
    CHECK((values[leaf.path].scalar_type() == leaf.value.scalar_type()));
    CHECK(at::equal(values[leaf.path], leaf.value));
  }
  CHECK(values.size() == leaves);
}

std::vector<std::string> digests(const gantry::Recording::Entry& entry) {
  std::vector<std::string> all;
  for (const gantry::Recording::Value& value : entry.values) all.push_back(value.digest);
  return all;
}

gantry::Recording recording(const Job& job, const std::string& label) {
  return gantry::read_recording(job.dir.path(e2e::recording_of(label)));
}

}  // namespace

TEST_CASE("rates and steps are recorded as each step uses them") {
  const Job job(e2e::job_with({"{NAME: LearningRateCallback}", "{NAME: GlobalStepStateCallback}"}));
  // 4 steps an epoch, the first of them a warm-up from 0.02 to 0.1 by the fraction of the epoch.
  const std::string hook = "SOLVER.TRAIN_HOOKS[LrHook].";
  job.run({kTwoEpochs, "SOLVER.LR_SCHEDULER=null", hook + "WARMUP_START_LR=0.02", hook + "SET_BY_EPOCH=false"});
  const Entries rates = recorded(job, "LearningRateCallback"), steps = recorded(job, "GlobalStepStateCallback");
  REQUIRE(rates.size() == 8);
  REQUIRE(steps.size() == 8);
  // The windows of 3 end within the iterations 2, 5, 8 and 9 of 10.
  const std::vector<int64_t> last = {2, 5, 8, 9, 12, 15, 18, 19};
  CHECK(iterations(rates) == last);
  CHECK(iterations(steps) == last);
  for (std::size_t i = 0; i < 8; ++i) {
    const double done = static_cast<double>(last[i]) / 10;
    CHECK(rates[i].value("lr").number() == doctest::Approx(i < 4 ? 0.02 + 0.08 * done : 0.1).epsilon(1e-12));
    CHECK(rates[i].value("lr").dtype == "float64");
    CHECK(steps[i].value("step").text == std::to_string(i));
    CHECK(steps[i].value("step").dtype == "int64");
    CHECK(rates[i].event == static_cast<int64_t>(i));
    CHECK(rates[i].epoch == (i < 4 ? 1 : 2));
    CHECK(rates[i].mode == "train");
    CHECK(rates[i].batch == last[i] % 10);
  }
}

TEST_CASE("each parameter group has its own rate and options in the recordings") {
  const Job job(e2e::job_with({"{NAME: LearningRateCallback}", "{NAME: OptimizerStateCallback}"}));
  job.run({kOneEpoch, "SOLVER.TRAIN_HOOKS[LrHook].WARMUP_EPOCHS=0", "SOLVER.LR_SCHEDULER=null",
           "SOLVER.OPTIMIZER={NAME: SGD, LEARNING_RATE: 0.1, MOMENTUM: 0.9, WEIGHT_DECAY: 0.01, PARAM_GROUPS: [{MATCH: "
           "bias, LEARNING_RATE: 0.2, WEIGHT_DECAY: 0}]}"});
  const Entries rates = recorded(job, "LearningRateCallback"), options = recorded(job, "OptimizerStateCallback");
  REQUIRE(rates.size() == 4);
  CHECK(numbers(rates, "pg0_lr") == std::vector<double>(4, 0.1));
  CHECK(numbers(rates, "pg1_lr") == std::vector<double>(4, 0.2));
  REQUIRE(options.size() == 8);  // where a step starts, and before it
  const std::map<std::string, double> expected = {
      {"groups/0/lr", 0.1}, {"groups/0/base_lr", 0.1}, {"groups/0/weight_decay", 0.01}, {"groups/0/momentum", 0.9},
      {"groups/1/lr", 0.2}, {"groups/1/base_lr", 0.2}, {"groups/1/weight_decay", 0},    {"groups/1/momentum", 0.9}};
  REQUIRE(options[7].values.size() == expected.size());
  for (const auto& [field, value] : expected) CHECK(options[7].value(field).number() == value);
}

TEST_CASE("samples are counted where each step starts as served and as computed") {
  const Job job(e2e::job_with({"{NAME: ConsumedSamplesCallback}"}));
  job.run({kTwoEpochs});
  const Entries entries = recorded(job, "ConsumedSamplesCallback");
  CHECK(numbers(entries, "consumed_samples") == std::vector<double>{0, 21, 42, 63, 66, 87, 108, 129});
  CHECK(numbers(entries, "computed") == numbers(entries, "consumed_samples"));
}

TEST_CASE("the loss of a step is the mean of its window weighted by samples") {
  const Job job(e2e::job_with({"{NAME: TrainLossCallback}", "{NAME: ValidLossCallback}", "{NAME: ValidOutputCallback}",
                               "{NAME: TrainOutputCallback}"}));
  job.run({kOneEpoch, kWindow + "4"});
  std::vector<double> losses;
  for (const auto& [iteration, bits] : job.losses()) losses.push_back(e2e::double_of_bits(bits));
  REQUIRE(losses.size() == 10);
  const Entries steps = recorded(job, "TrainLossCallback");
  REQUIRE(steps.size() == 3);  // of 4, 4 and 2 batches; those of 7 samples, the last one of 3
  for (std::size_t w = 0; w < 2; ++w) {
    double sum = 0;
    for (std::size_t i = 4 * w; i < 4 * w + 4; ++i) sum += 7 * losses[i];
    CHECK(steps[w].value("loss").number() == doctest::Approx(sum / 28).epsilon(1e-14));
  }
  CHECK(steps[2].value("loss").number() == doctest::Approx((7 * losses[8] + 3 * losses[9]) / 10).epsilon(1e-14));
  CHECK(steps[2].value("loss").number() != doctest::Approx((losses[8] + losses[9]) / 2).epsilon(1e-6));
  CHECK(iterations(steps) == std::vector<int64_t>{3, 7, 9});

  const Entries outputs = recorded(job, "TrainOutputCallback");
  REQUIRE(outputs.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(outputs[i].value("loss").number() == losses[i]);

  // Evaluations have 12 samples in batches of 5.
  const Entries valid = recorded(job, "ValidLossCallback"), valid_outputs = recorded(job, "ValidOutputCallback");
  REQUIRE(valid.size() == 3);
  REQUIRE(valid_outputs.size() == 3);
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(valid[i].value("loss").digest == valid_outputs[i].value("loss").digest);
    sum += (i < 2 ? 5 : 2) * valid[i].value("loss").number();
  }
  const std::string report = job.dir.read("work/checkpoints/last/checkpoint.json");
  CHECK(sum / 12 == doctest::Approx(nlohmann::json::parse(report).at("metrics").at("eval/loss").get<double>()));
}

TEST_CASE("a model's own weights are those of the recorded mean") {
  Job job(e2e::job_with({"{NAME: TrainLossCallback}", "{NAME: TrainOutputCallback}"}));
  job.run({kOneEpoch, kWindow + "5", "SOLVER.MODEL={NAME: test/WeightedPoints}", "SOLVER.EVAL_DATA=null",
           "SOLVER.HOOKS[CheckpointHook].SAVE_BEST_BY=null", "SOLVER.METRICS=[]",
           "SOLVER.TRAIN_DATA={NAME: test/Points, SIZE: 66, BATCH_SIZE: 7, NUM_WORKERS: 0}"});
  const Entries outputs = recorded(job, "TrainOutputCallback"), steps = recorded(job, "TrainLossCallback");
  REQUIRE(outputs.size() == 10);
  REQUIRE(steps.size() == 2);
  for (std::size_t w = 0; w < 2; ++w) {
    double sum = 0, weight = 0, plain = 0;
    for (std::size_t i = 5 * w; i < 5 * w + 5; ++i) {
      sum += outputs[i].value("loss").number() * outputs[i].value("weight").number();
      weight += outputs[i].value("weight").number();
      plain += outputs[i].value("loss").number() / 5;
    }
    CHECK(steps[w].value("loss").number() == doctest::Approx(sum / weight).epsilon(1e-12));
    CHECK(steps[w].value("loss").number() != doctest::Approx(plain).epsilon(1e-6));
  }
}

TEST_CASE("recorded batches are those that were trained on in their order") {
  const Job job(e2e::job_with({"{NAME: TrainInputCallback, VALUES: whole}", "{NAME: ValidInputCallback, VALUES: whole}",
                               "{NAME: SampleIdCallback}", "{NAME: test/IdTrace, FILE: ids.txt}",
                               "{NAME: test/SaveBatches, FILE: batches.safetensors}"}));
  job.run({kTwoEpochs});
  const Entries ids = recorded(job, "SampleIdCallback");
  const gantry::Recording train = recording(job, "TrainInputCallback"), valid = recording(job, "ValidInputCallback");
  REQUIRE(ids.size() == 26);
  REQUIRE(train.entries.size() == 20);
  REQUIRE(valid.entries.size() == 6);
  const std::vector<std::string> traced = job.lines("ids.txt");
  const auto saved = gantry::SafetensorsFile::open(job.dir.path("batches.safetensors"));
  REQUIRE(traced.size() == 20);
  std::size_t trained = 0;
  for (const RecordedEntry& entry : ids) {
    if (entry.mode != "train") continue;
    std::string line = e2e::replaced(e2e::replaced(entry.value("ids").text, "[", ""), "]", "");
    std::erase(line, ',');
    CHECK(traced[trained] == std::to_string(entry.epoch) + " " + std::to_string(entry.iteration) + " " + line);
    ++trained;
  }
  CHECK(trained == 20);
  // An evaluation has its 12 samples in order, 5 at a time.
  CHECK(ids[10].mode == "eval");
  CHECK(ids[10].value("ids").text == "[0, 1, 2, 3, 4]");
  CHECK(ids[12].value("ids").text == "[10, 11]");

  for (std::size_t i = 0; i < 20; ++i) {
    INFO("iteration " << i);
    std::map<std::string, gantry::Recording::Value> values;
    for (const auto& value : train.entries[i].values) values[value.field] = value;
    for (const char* field : {"img", "label"})
      CHECK(
          at::equal(train.whole(values["batch/" + std::string(field)]), saved.tensor(std::to_string(i) + "/" + field)));
    CHECK(values["first_position"].text == std::to_string(i / 10 * 66 + i % 10 * 7));
    CHECK(values["weight"].text == (i % 10 == 9 ? "3.0" : "7.0"));
    CHECK(values["ids"].shape == std::vector<int64_t>{i % 10 == 9 ? 3 : 7});
    CHECK(values.size() == 5);
  }
  CHECK(valid.entries[3].values[0].digest == valid.entries[0].values[0].digest);  // the second evaluation's, too
  CHECK(valid.entries[1].values[0].digest != valid.entries[0].values[0].digest);
}

TEST_CASE("recorded states are those of the checkpoint that was saved there") {
  // HookStateCallback first: each recorder counts its own entries.
  const Job job(
      e2e::job_with({"{NAME: HookStateCallback, VALUES: whole}", "{NAME: WeightsCallback, VALUES: whole}",
                     "{NAME: OptimizerStateCallback, VALUES: whole}", "{NAME: RngStateCallback, VALUES: whole}",
                     "{NAME: LrSchedulerStateCallback, VALUES: whole}"}));
  job.run({kTwoEpochs, "SOLVER.HOOKS[CheckpointHook].INTERVAL=1 steps",
           "SOLVER.LR_SCHEDULER={NAME: ReduceLROnPlateau, PATIENCE: 0, THRESHOLD: 0.9}"});
  const gantry::Recording hooks = recording(job, "HookStateCallback"), weights = recording(job, "WeightsCallback"),
                          optimizer = recording(job, "OptimizerStateCallback"),
                          rng = recording(job, "RngStateCallback"),
                          schedule = recording(job, "LrSchedulerStateCallback");
  CHECK(weights.entries.size() == 8);
  CHECK(optimizer.entries.size() == 16);
  CHECK(rng.entries.size() == 8 + 6);
  for (const int64_t iteration : {6, 13, 16}) {
    INFO("after iteration " << iteration);
    const gantry::State saved = gantry::read_checkpoint(gantry::read_checkpoint_info(job.checkpoint(iteration)));
    check_same(weights, entry_at(weights, iteration), saved.child("model"));
    check_same(optimizer, entry_at(optimizer, iteration), saved.child("optimizer"), {"step"});
    check_same(rng, entry_at(rng, iteration), saved.child("rng"));
    check_same(schedule, entry_at(schedule, iteration), saved.child("scheduler"));
    check_same(hooks, entry_at(hooks, iteration), saved.child("hooks"));
    CHECK(entry_at(optimizer, iteration).values.back().text == std::to_string(saved.integer("trainer/step")));
  }
  // Were they all the same, this would mean nothing.
  for (const auto* one : {&weights, &optimizer, &rng, &hooks})
    CHECK(digests(entry_at(*one, 13)) != digests(entry_at(*one, 16)));
  CHECK(entry_at(weights, 0).values.size() > 4);
  CHECK_FALSE(entry_at(schedule, 13).values.empty());
}

TEST_CASE("what is recorded on the CPU before a step is not what the step makes of it") {
  const Job job(e2e::job_with({"{NAME: WeightsCallback, VALUES: whole}", "{NAME: GradientCallback, VALUES: whole}"}));
  const double rate = 0.5;
  job.run({kOneEpoch, "SOLVER.LR_SCHEDULER=null", "SOLVER.TRAIN_HOOKS[LrHook].WARMUP_EPOCHS=0",
           "SOLVER.OPTIMIZER={NAME: SGD, LEARNING_RATE: 0.5}", "SOLVER.TRAIN_HOOKS[BackwardHook].GRADIENT_CLIP=0.25"});
  const gantry::Recording weights = recording(job, "WeightsCallback"), gradients = recording(job, "GradientCallback");
  REQUIRE(weights.entries.size() == 4);
  REQUIRE(gradients.entries.size() == 4);
  for (std::size_t step = 0; step + 1 < 4; ++step) {
    std::map<std::string, gantry::Recording::Value> before, after;
    for (const auto& value : weights.entries[step].values) before[value.field] = value;
    for (const auto& value : weights.entries[step + 1].values) after[value.field] = value;
    double square = 0;
    int moving = 0;
    for (const gantry::Recording::Value& value : gradients.entries[step].values) {
      INFO(value.field << " of step " << step);
      const at::Tensor gradient = gradients.whole(value);
      const at::Tensor moved = weights.whole(before[value.field]).sub(gradient.mul(rate));
      if (gradient.abs().max().item().toDouble() > 1e-3) {
        CHECK(before[value.field].digest != after[value.field].digest);
        ++moving;
      }
      CHECK(moved.sub(weights.whole(after[value.field])).abs().max().item().toDouble() < 1e-6);
      square += gradient.pow(2).sum().item().toDouble();
    }
    CHECK(gradients.entries[step].values.size() == before.size() - 3);  // but for what batch normalisation counts
    CHECK(moving >= 3);
    CHECK(std::sqrt(square) == doctest::Approx(0.25).epsilon(1e-3));  // clipped
  }
}

TEST_CASE("a schedule without state has an entry with nothing in it for each step") {
  const Job job(e2e::job_with({"{NAME: LrSchedulerStateCallback}"}));
  job.run({kOneEpoch});
  const Entries entries = recorded(job, "LrSchedulerStateCallback");
  REQUIRE(entries.size() == 4);
  for (const RecordedEntry& entry : entries) CHECK(entry.values.empty());
}

TEST_CASE("events are recorded in the order in which they come") {
  const Job job(e2e::job_with({"{NAME: EventOrderCallback}"}));
  job.run({kOneEpoch, "SOLVER.LIMIT_TRAIN_BATCHES=3", "SOLVER.LIMIT_EVAL_BATCHES=1", kWindow + "2"});
  const Entries entries = recorded(job, "EventOrderCallback");
  CHECK(points(entries) ==
        std::vector<std::string>{"train before_epoch",   "train before_all_iter",  //
                                 "train before_iter",    "train after_iter",       //
                                 "train before_iter",    "train after_iter",      "train before_step",
                                 "train after_step",  //
                                 "train before_iter",    "train after_iter",      "train before_step",
                                 "train after_step",  // the last window is a short one
                                 "train after_all_iter", "eval before_epoch",     "eval before_all_iter",
                                 "eval before_iter",     "eval after_iter",       "eval after_all_iter",
                                 "eval after_epoch",     "train evaluated",       "train after_epoch"});
  const RecordedEntry& evaluated = entries[entries.size() - 2];
  REQUIRE(evaluated.values.size() == 4);
  CHECK(evaluated.values[1].text == "eval");
  const auto metrics = nlohmann::json::parse(job.dir.read("work/checkpoints/last/checkpoint.json")).at("metrics");
  for (const char* metric : {"loss", "acc@1"})
    CHECK(evaluated.value("metrics/" + std::string(metric)).number() ==
          metrics.at("eval/" + std::string(metric)).get<double>());
  for (std::size_t i = 0; i < entries.size(); ++i) CHECK(entries[i].event == static_cast<int64_t>(i));
}

TEST_CASE("what logs are given is recorded in every iteration") {
  const Job job(e2e::job_with({"{NAME: LogValueCallback}", "{NAME: test/LogValues}"}));
  job.run({kOneEpoch, "SOLVER.LR_SCHEDULER=null", "SOLVER.TRAIN_HOOKS[LrHook].WARMUP_EPOCHS=0"});
  const Entries entries = recorded(job, "LogValueCallback");
  REQUIRE(entries.size() == 13);
  for (std::size_t i = 0; i < 13; ++i) {
    const std::size_t own = i < 10 ? i : i - 10;
    CHECK(entries[i].value("value/every").number() == static_cast<double>(own));
    CHECK(entries[i].value("value/nothing").text == "nan");
    if (own % 2 == 1) CHECK(entries[i].value("value/second").number() == static_cast<double>(own));
    if (i < 10) CHECK(entries[i].value("var/lr").number() == 0.1);
    CHECK(entries[i].values.size() == (own % 2 == 1 ? 3u : 2u) + (i < 10 ? 1u : 0u));
  }
}
