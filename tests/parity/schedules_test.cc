#include <ATen/ops/empty.h>

#include "gantry/lr_scheduler.h"
#include "parity/parity.h"
#include "unit/plugin_under_test.h"

// Learning rates against PyTorch's schedulers, where PyTorch has them or the parts of them.

namespace {

constexpr int64_t kPositions = 60;
const std::vector<double> kBaseRates = {0.1, 0.0375};

/// `torch`: a list of schedulers, [class, options, from position], each of which takes over from the one before.
parity::Numbers rates_of(const std::string& library, const std::string& name,
                         const std::vector<std::pair<std::string, gantry::Config>>& config, const std::string& torch) {
  PluginUnderTest plugin(library);
  auto schedule = plugin.build<gantry::LrScheduler>(name, map_config(config));
  parity::Numbers numbers;
  numbers.texts = {{"schedule", name}, {"torch", torch}};
  for (std::size_t group = 0; group < kBaseRates.size(); ++group) {
    at::Tensor rates = at::empty({kPositions + 1}, at::kDouble);
    auto* out = rates.mutable_data_ptr<double>();
    *out++ = kBaseRates[group];
    for (int64_t k = 0; k < kPositions; ++k) {
      gantry::SchedulePosition position;
      position.at = static_cast<double>(k);
      position.step = k;
      position.total_steps = kPositions;
      *out++ = schedule->lr(position, kBaseRates[group], static_cast<int64_t>(group));
    }
    numbers.tensors.emplace_back("group" + std::to_string(group), rates);
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

  const auto multi_step = [&](const std::vector<std::pair<std::string, gantry::Config>>& config, const char* torch) {
    all.push_back(rates_of("gantry-multi-step-lr", "MultiStepLR", config, torch));
  };
  multi_step({{"MILESTONES", list_config({"30", "4", "45", "30"})}},
             R"([["MultiStepLR", {"milestones": [4, 30, 30, 45]}, 0]])");
  multi_step({{"MILESTONES", list_config({"11"})}, {"GAMMA", text_config("0.37")}},
             R"([["MultiStepLR", {"milestones": [11], "gamma": 0.37}, 0]])");

  const auto cosine = [&](const std::vector<std::pair<std::string, gantry::Config>>& config, const char* torch) {
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
  const auto annealing = [&](const std::vector<std::pair<std::string, gantry::Config>>& config, const char* torch) {
    all.push_back(rates_of("gantry-step-annealing-lr", "StepAnnealingLR", config, torch));
  };
  annealing({{"WARMUP_STEPS", text_config("8")}},
            R"([["LinearLR", {"start_factor": 0.125, "total_iters": 7}, 0], ["CosineAnnealingLR", {"T_max": 52}, 8]])");
  annealing(
      {{"WARMUP_STEPS", text_config("8")}, {"TOTAL_STEPS", text_config("40")}, {"DECAY_MODE", text_config("linear")}},
      R"([["LinearLR", {"start_factor": 0.125, "total_iters": 7}, 0],
          ["LinearLR", {"start_factor": 1, "end_factor": 0, "total_iters": 32}, 8]])");
  annealing({}, R"([["CosineAnnealingLR", {"T_max": 60}, 0]])");
  parity::compare("schedules.py", all);
}
