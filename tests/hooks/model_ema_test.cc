#include <ATen/ops/lerp.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "hooks/odd_job.h"

// The average of ModelEmaHook against one that is computed here, and evaluations that run with it.

namespace {

using e2e::Job;
using e2e::open_file;
using e2e::operator+;
using e2e::with_hook;

const std::string kAverage = "hooks/ModelEmaHook/state/average/";

std::string ema(const std::string& keys) { return with_hook("{NAME: ModelEmaHook, " + keys + "}"); }

/// The parameters before the first step, then after each: encoder 0..3, bias.
std::vector<std::vector<double>> weights(const Job& job) {
  std::vector<std::vector<double>> all = {{-0.25, -0.15, -0.05, 0.05, 0.5}};
  for (auto& step : e2e::values_of(job.lines("digest.txt"))) all.push_back(std::move(step));
  return all;
}

std::vector<double> average_in(const Job& job, int64_t iteration) {
  const gantry::SafetensorsFile state = open_file(job.checkpoint(iteration) + "/state.safetensors");
  std::vector<double> values;
  for (const char* name : {"encoder", "bias"}) {
    const at::Tensor flat = state.tensor(kAverage + name).flatten();
    for (int64_t i = 0; i < flat.numel(); ++i) values.push_back(flat[i].item().toDouble());
  }
  return values;
}

template <class Keep>
std::vector<double> average_of(const std::vector<std::vector<double>>& weights, Keep&& keep) {
  std::vector<double> average = weights.front();
  for (std::size_t n = 0; n + 1 < weights.size(); ++n)
    for (std::size_t i = 0; i < average.size(); ++i)
      average[i] = keep(n) * average[i] + (1 - keep(n)) * weights[n + 1][i];
  return average;
}

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-14);
}

}  // namespace

TEST_CASE("ModelEmaHook averages the weights of all steps from those before the first") {
  Job job(e2e::kOddJob);
  job.run({ema("BETA: 0.8")});
  const auto all = weights(job);
  REQUIRE(all.size() == 15);
  check_close(average_in(job, 14), average_of(all, [](std::size_t) { return 0.8; }));
  CHECK(std::abs(average_in(job, 14)[0] - all.back()[0]) > 1e-3);  // an average, not the last weights
}

TEST_CASE("the average moves once for each optimizer step and not for each iteration") {
  Job job(e2e::kOddJob);
  job.run({ema("BETA: 0.8"), "SOLVER.ACCU_STEP=3"});
  const auto all = weights(job);
  REQUIRE(all.size() == 7);  // windows of 3, 3 and 1 iterations, twice
  check_close(average_in(job, 14), average_of(all, [](std::size_t) { return 0.8; }));
}

TEST_CASE("WARMUP makes early steps count more") {
  Job job(e2e::kOddJob);
  job.run({ema("BETA: 0.5, WARMUP: true")});
  check_close(average_in(job, 14), average_of(weights(job), [](std::size_t n) {
                return std::min(0.5, (1.0 + static_cast<double>(n)) / (10.0 + static_cast<double>(n)));
              }));
}

TEST_CASE("buffers of floating point are averaged and other buffers are the model's own") {
  Job job(e2e::kOddJob);
  job.run({ema("BETA: 0.5"), "SOLVER.MAX_EPOCHS=1", "SOLVER.HOOKS[CheckpointHook].INTERVAL=1 iters"});
  const gantry::SafetensorsFile state = open_file(job.checkpoint(7) + "/state.safetensors");
  at::Tensor expected = at::zeros({4}, at::kDouble);
  for (int64_t n = 1; n <= 7; ++n)
    expected = at::lerp(expected, open_file(job.checkpoint(n) + "/model.safetensors").tensor("mean"), 0.5);
  CHECK(state.tensor(kAverage + "mean").sub(expected).abs().max().item().toDouble() < 1e-14);
  CHECK(expected.abs().max().item().toDouble() > 1e-3);
  CHECK(state.find(kAverage + "seen") == nullptr);
  // 16 bits are too few to take in small changes: those are averaged in 32.
  CHECK((state.find(kAverage + "bf16")->dtype == at::kFloat));
  CHECK(state.tensor(kAverage + "fp16")[0].item().toDouble() == 1.5);
}

TEST_CASE("evaluations run with the average and training does not know of it") {
  // With BETA 0 the average is the weights; with nearly 1 what they were before the first step.
  Job off(e2e::kOddJob), on(e2e::kOddJob), none(e2e::kOddJob), latest(e2e::kOddJob);
  const e2e::RunResult plain = none.run({"SOLVER.MAX_EPOCHS=2"});
  const e2e::RunResult without = off.run({ema("BETA: 0.999999999, EVAL_EMA: false")});
  const e2e::RunResult with = on.run({ema("BETA: 0.999999999")});
  const e2e::RunResult same = latest.run({ema("BETA: 0")});
  const auto loss = [](const e2e::RunResult& run) {
    return e2e::json_number(run.last_line(), {"metrics", "eval", "loss"});
  };
  CHECK(loss(without) == loss(plain));
  CHECK(loss(same) == doctest::Approx(loss(plain)).epsilon(1e-12));
  CHECK(std::abs(loss(with) - loss(plain)) > 0.01);
  // What the weights before the first step give: those of a run that does not train.
  Job untrained(e2e::kOddJob);
  const e2e::RunResult start = untrained.run(
      {"SOLVER.OPTIMIZER.LEARNING_RATE=0", "SOLVER.MODEL={NAME: test/OddTensors}", ema("BETA: 0.999999999")});
  CHECK(loss(with) == doctest::Approx(loss(start)).epsilon(1e-6));

  CHECK(on.lines("digest.txt") == none.lines("digest.txt"));
  CHECK(off.lines("digest.txt") == none.lines("digest.txt"));
  CHECK(on.losses() == none.losses());
  // And the model in the checkpoint is the one that is trained.
  CHECK(on.dir.read("work/checkpoints/ldm_step-14/model.safetensors") ==
        none.dir.read("work/checkpoints/ldm_step-14/model.safetensors"));
}

TEST_CASE("a run with an average that is stopped anywhere goes on to the same bytes") {
  const std::vector<std::string> changes = {ema("BETA: 0.9, WARMUP: true"), "SOLVER.ACCU_STEP=3"};
  Job undisturbed(e2e::kOddJob), stopped(e2e::kOddJob);
  undisturbed.run(changes);
  stopped.run(changes + std::vector{e2e::at_iteration(1)}, 75);
  stopped.resume(changes + e2e::at_point("eval.after_iter", 1, 0), 75);  // an evaluation that is cut short
  stopped.resume(changes + std::vector{e2e::at_iteration(9)}, 75);
  stopped.resume(changes);
  e2e::check_same_training(undisturbed, stopped);
  CHECK(average_in(stopped, 14) == average_in(undisturbed, 14));
  CHECK(average_in(undisturbed, 14) != average_in(undisturbed, 7));
}

TEST_CASE("a hook that a resumed run adds begins with the weights of the checkpoint") {
  Job job(e2e::kOddJob);
  job.run({"SOLVER.MAX_EPOCHS=1"});
  const e2e::RunResult result = job.resume({ema("BETA: 0.8"), "--allow-config-change"});
  CHECK(e2e::contains(result.err, "the checkpoint has no hooks/ModelEmaHook"));
  auto all = weights(job);  // the second process wrote the file anew
  REQUIRE(all.size() == 8);
  const gantry::SafetensorsFile model = open_file(job.checkpoint(7) + "/model.safetensors");
  for (int64_t i = 0; i < 4; ++i) all[0][static_cast<std::size_t>(i)] = model.tensor("encoder")[0][i].item().toDouble();
  all[0][4] = model.tensor("bias").item().toDouble();
  check_close(average_in(job, 14), average_of(all, [](std::size_t) { return 0.8; }));
}

TEST_CASE("an evaluation of a checkpoint runs with its average") {
  // Under HOOKS, which attend every mode.
  const auto with = [](const std::string& keys) {
    return "SOLVER.HOOKS=[{NAME: CheckpointHook}, {NAME: ModelEmaHook, BETA: 0.9" + keys + "}]";
  };
  const std::vector<std::string> evaluate = {"SOLVER.MODE=eval", "SOLVER.RESUME_FROM=work/checkpoints/last"};
  Job job(e2e::kOddJob);
  const std::string trained = job.run({with("")}).last_line();
  const std::string evaluated = job.run(std::vector{with("")} + evaluate).last_line();
  const std::string raw = job.run(std::vector{with(", EVAL_EMA: false")} + evaluate).last_line();
  const auto loss = [](const std::string& report) { return e2e::json_number(report, {"metrics", "eval", "loss"}); };
  CHECK(loss(evaluated) == loss(trained));
  CHECK(loss(raw) != loss(trained));
}
