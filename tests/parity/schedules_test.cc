#include <ATen/ops/empty.h>

#include "gantry/lr_scheduler.h"
#include "parity/parity.h"
#include "unit/plugin_under_test.h"

// Learning rates against PyTorch's schedulers, where PyTorch has them or the parts of them.

namespace {

constexpr int64_t kPositions = 200;
const std::vector<double> kBaseRates = {0.1, 0.0375};
using Keys = std::vector<std::pair<std::string, gantry::Config>>;

gantry::SchedulePosition position_at(int64_t k) {
  gantry::SchedulePosition position;
  position.at = static_cast<double>(k);
  position.step = k;
  position.epoch = static_cast<double>(k);
  position.total_steps = kPositions;
  return position;
}

/// `torch`: a list of schedulers, [class, options, from position], each of which takes over from the one before.
parity::Numbers rates_of(const std::string& library, const std::string& name, const Keys& config,
                         const std::string& torch) {
  PluginUnderTest plugin(library);
  auto schedule = plugin.build<gantry::LrScheduler>(name, map_config(config));
  parity::Numbers numbers;
  numbers.texts = {{"schedule", name}, {"torch", torch}};
  for (std::size_t group = 0; group < kBaseRates.size(); ++group) {
    at::Tensor rates = at::empty({kPositions + 1}, at::kDouble);
    auto* out = rates.mutable_data_ptr<double>();
    *out++ = kBaseRates[group];
    for (int64_t k = 0; k < kPositions; ++k) {
      *out++ = schedule->lr(position_at(k), kBaseRates[group], static_cast<int64_t>(group));
    }
    numbers.tensors.emplace_back("group" + std::to_string(group), rates);
  }
  if (const auto* cycle = dynamic_cast<const gantry::MomentumSchedule*>(schedule.get())) {
    at::Tensor momentum = at::empty({kPositions}, at::kDouble);
    for (int64_t k = 0; k < kPositions; ++k)
      momentum.mutable_data_ptr<double>()[k] = cycle->momentum(position_at(k), /*group=*/0);
    numbers.tensors.emplace_back("momentum", momentum);
  }
  return numbers;
}

}  // namespace

TEST_CASE("schedules give the learning rates of PyTorch's") {
  std::vector<parity::Numbers> all;
  all.push_back(
      rates_of("gantry-step-lr", "StepLR", {{"STEP_SIZE", text_config("7")}}, R"([["StepLR", {"step_size": 7}, 0]])"));
  all.push_back(rates_of("gantry-step-lr", "StepLR", {{"STEP_SIZE", text_config("1")}, {"GAMMA", text_config("0.93")}},
                         R"([["StepLR", {"step_size": 1, "gamma": 0.93}, 0]])"));

  const auto multi_step = [&](const Keys& config, const char* torch) {
    all.push_back(rates_of("gantry-multi-step-lr", "MultiStepLR", config, torch));
  };
  multi_step({{"MILESTONES", list_config({"30", "4", "45", "30"})}},
             R"([["MultiStepLR", {"milestones": [4, 30, 30, 45]}, 0]])");
  multi_step({{"MILESTONES", list_config({"11"})}, {"GAMMA", text_config("0.37")}},
             R"([["MultiStepLR", {"milestones": [11], "gamma": 0.37}, 0]])");

  const auto cosine = [&](const Keys& config, const char* torch) {
    all.push_back(rates_of("gantry-cosine-annealing-lr", "CosineAnnealingLR", config, torch));
  };
  cosine({{"T_MAX", text_config("60")}}, R"([["CosineAnnealingLR", {"T_max": 60}, 0]])");
  // It rises again after T_MAX.
  cosine({{"T_MAX", text_config("23")}, {"ETA_MIN", text_config("0.003")}},
         R"([["CosineAnnealingLR", {"T_max": 23, "eta_min": 0.003}, 0]])");
  parity::compare("schedules.py", all);
}

TEST_CASE("warm-ups give the learning rates of PyTorch's LinearLR and what follows it") {
  std::vector<parity::Numbers> all;
  all.push_back(rates_of("gantry-warmup-to-constant-lr", "WarmupToConstantLR", {{"WARMUP_STEPS", text_config("8")}},
                         R"([["LinearLR", {"start_factor": 0.125, "total_iters": 7}, 0]])"));
  const auto annealing = [&](const Keys& config, const char* torch) {
    all.push_back(rates_of("gantry-step-annealing-lr", "StepAnnealingLR", config, torch));
  };
  annealing(
      {{"WARMUP_STEPS", text_config("8")}},
      R"([["LinearLR", {"start_factor": 0.125, "total_iters": 7}, 0], ["CosineAnnealingLR", {"T_max": 192}, 8]])");
  annealing(
      {{"WARMUP_STEPS", text_config("8")}, {"TOTAL_STEPS", text_config("40")}, {"DECAY_MODE", text_config("linear")}},
      R"([["LinearLR", {"start_factor": 0.125, "total_iters": 7}, 0],
          ["LinearLR", {"start_factor": 1, "end_factor": 0, "total_iters": 32}, 8]])");
  annealing({}, R"([["CosineAnnealingLR", {"T_max": 200}, 0]])");
  parity::compare("schedules.py", all);
}

TEST_CASE("ExponentialLR and CosineAnnealingWarmRestarts give the learning rates of PyTorch's") {
  std::vector<parity::Numbers> all;
  all.push_back(rates_of("gantry-exponential-lr", "ExponentialLR", {{"GAMMA", text_config("0.97")}},
                         R"([["ExponentialLR", {"gamma": 0.97}, 0]])"));
  const auto restarts = [&](const Keys& keys, const char* torch) {
    all.push_back(rates_of("gantry-cosine-annealing-warm-restarts", "CosineAnnealingWarmRestarts", keys, torch));
  };
  restarts({{"T_0", text_config("17")}}, R"([["CosineAnnealingWarmRestarts", {"T_0": 17}, 0]])");
  restarts({{"T_0", text_config("5")}, {"T_MULT", text_config("2")}, {"ETA_MIN", text_config("0.003")}},
           R"([["CosineAnnealingWarmRestarts", {"T_0": 5, "T_mult": 2, "eta_min": 0.003}, 0]])");
  restarts({{"T_0", text_config("2")}, {"T_MULT", text_config("3")}},
           R"([["CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 3}, 0]])");
  parity::compare("schedules.py", all);
}

TEST_CASE("CyclicLR gives the learning rates and the momentum of PyTorch's") {
  std::vector<parity::Numbers> all;
  const auto cyclic = [&](Keys keys, const char* torch) {
    all.push_back(rates_of("gantry-cyclic-lr", "CyclicLR", keys, torch));
  };
  // PyTorch has to be told the groups' own rates.
  cyclic({{"MAX_LR", text_config("0.4")}, {"STEP_SIZE_UP", text_config("7")}},
         R"([["CyclicLR", {"base_lr": [0.1, 0.0375], "max_lr": 0.4, "step_size_up": 7}, 0]])");
  cyclic({{"BASE_LR", text_config("0.01")},
          {"MAX_LR", list_config({"0.4", "0.2"})},
          {"STEP_SIZE_UP", text_config("10")},
          {"STEP_SIZE_DOWN", text_config("23")},
          {"MODE", text_config("triangular2")},
          {"BASE_MOMENTUM", text_config("0.5")},
          {"MAX_MOMENTUM", text_config("0.95")}},
         R"([["CyclicLR", {"base_lr": 0.01, "max_lr": [0.4, 0.2], "step_size_up": 10, "step_size_down": 23,
                           "mode": "triangular2", "base_momentum": 0.5, "max_momentum": 0.95}, 0]])");
  cyclic({{"BASE_LR", list_config({"0.01", "0.02"})},
          {"MAX_LR", text_config("0.3")},
          {"STEP_SIZE_UP", text_config("31")},
          {"STEP_SIZE_DOWN", text_config("6")},
          {"MODE", text_config("exp_range")},
          {"GAMMA", text_config("0.98")}},
         R"([["CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": 0.3, "step_size_up": 31, "step_size_down": 6,
                           "mode": "exp_range", "gamma": 0.98}, 0]])");
  // The first half of PyTorch's default cycle.
  cyclic({{"BASE_LR", text_config("0.01")}, {"MAX_LR", text_config("0.3")}},
         R"([["CyclicLR", {"base_lr": 0.01, "max_lr": 0.3}, 0]])");
  parity::compare("schedules.py", all);
}

TEST_CASE("LambdaLR gives the learning rates that PyTorch's gives with the same Python expression") {
  std::vector<parity::Numbers> all;
  const std::vector<std::string> expressions = {
      "0.95 ** epoch",
      "0.5 ** (epoch // 30)",
      "min(1, (epoch + 1) / 40) * 0.999 ** epoch",
      "2 ** -(epoch % 7) + 2 ** 3 ** 2 / 1000",
      "4 + -2 ** 2 + 1 / (1 + 5e-2 * epoch)",
      "max(0, 1 - epoch / 250) ** 0.9",
      "(epoch < 50) * 1 + (epoch >= 50) * 0.1",
  };
  for (const std::string& text : expressions)
    all.push_back(rates_of("gantry-lambda-lr", "LambdaLR", {{"LR_LAMBDA", text_config(text)}},
                           R"([["LambdaLR", {"lr_lambda": ")" + text + R"("}, 0]])"));
  all.push_back(rates_of("gantry-lambda-lr", "LambdaLR",
                         {{"LR_LAMBDA", list_config({"0.99 ** t", "1 / (1 + step)"})}, {"UNIT", text_config("epoch")}},
                         R"x([["LambdaLR", {"lr_lambda": ["0.99 ** epoch", "1 / (1 + epoch)"]}, 0]])x"));
  all.push_back(rates_of("gantry-lambda-lr", "LambdaLR", {{"TABLE", list_config({"1", "0.5", "0.25", "0.75"})}},
                         R"([["LambdaLR", {"lr_lambda": "[1, 0.5, 0.25, 0.75][min(epoch, 3)]"}, 0]])"));
  parity::compare("schedules.py", all);
}

TEST_CASE("LinoPolyLR gives the learning rates of its formula as a LambdaLR of PyTorch's") {
  std::vector<parity::Numbers> all;
  const auto poly = [&](const Keys& keys, const char* torch) {
    all.push_back(rates_of("gantry-lino-poly-lr", "LinoPolyLR", keys, torch));
  };
  poly({{"END_EPOCH", text_config("120")}}, R"([["LambdaLR", {"lr_lambda": "1 - min(epoch, 120) / 120"}, 0]])");
  poly({{"END_EPOCH", text_config("250")}, {"POWER", text_config("0.9")}},
       R"([["LambdaLR", {"lr_lambda": "(1 - min(epoch, 250) / 250) ** 0.9"}, 0]])");
  poly({{"END_EPOCH", text_config("150")}, {"POWER", text_config("3")}},
       R"([["PolynomialLR", {"total_iters": 150, "power": 3}, 0]])");
  parity::compare("schedules.py", all);
}
