#include <ATen/ops/empty.h>

#include "e2e/probe.h"
#include "gantry/text.h"
#include "parity/parity.h"

// ReduceLROnPlateau in runs whose evaluations give listed figures, beside PyTorch's fed with the same.

namespace {

constexpr int64_t kEpochs = 200;

/// Falls in stages, with plateaus between them on which it wavers, some by less than thresholds are.
std::vector<double> figures(double first, double direction) {
  std::vector<double> values;
  for (int64_t i = 0; i < kEpochs; ++i) {
    const double stage = static_cast<double>(i / 23), wave = static_cast<double>((7 * i) % 5) * 3e-4;
    values.push_back(first + direction * (stage * 0.11 + (i % 23 < 6 ? 0.01 * static_cast<double>(i % 23) : 0) + wave));
  }
  return values;
}

parity::Numbers rates_of(const std::string& keys, const std::string& torch, const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(gantry::number_text(value));
  const e2e::Training run({"SOLVER.MAX_EPOCHS=" + std::to_string(kEpochs), "SOLVER.LIMIT_TRAIN_BATCHES=1",
                           e2e::kEvalData,
                           "SOLVER.METRICS=[{NAME: test/ListedMetric, VALUES: [" + gantry::join(texts, ", ") + "]}]",
                           "SOLVER.LR_SCHEDULER={NAME: ReduceLROnPlateau, METRIC: listed" + keys + "}",
                           "SOLVER.HOOKS=[{NAME: test/Trace, FILE: trace.txt, ONLY: [before_step]}]"});
  const std::vector<std::string> lines = run.lines("trace.txt");
  REQUIRE(lines.size() == kEpochs);
  at::Tensor rates = at::empty({kEpochs}, at::kDouble), listed = at::empty({kEpochs}, at::kDouble);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    rates.mutable_data_ptr<double>()[i] = std::stod(lines[i].substr(lines[i].find("lr=") + 3));
    listed.mutable_data_ptr<double>()[i] = values[i];
  }
  return {{{"rates", rates}, {"values", listed}}, {{"options", torch}}};
}

}  // namespace

TEST_CASE("ReduceLROnPlateau gives the learning rates of PyTorch's") {
  const std::vector<double> falling = figures(1.5, -1), rising = figures(0.2, 1);
  parity::compare(
      "plateau.py",
      {rates_of("", "{}", falling),
       rates_of(", PATIENCE: 3, FACTOR: 0.5, THRESHOLD: 0.02, COOLDOWN: 4",
                R"({"patience": 3, "factor": 0.5, "threshold": 0.02, "cooldown": 4})", falling),
       rates_of(", PATIENCE: 2, FACTOR: 0.7, THRESHOLD_MODE: abs, THRESHOLD: 0.012, MIN_LR: 0.004",
                R"({"patience": 2, "factor": 0.7, "threshold_mode": "abs", "threshold": 0.012, "min_lr": 0.004})",
                falling),
       rates_of(", MODE: max, PATIENCE: 0, FACTOR: 0.8, EPS: 1e-3",
                R"({"mode": "max", "patience": 0, "factor": 0.8, "eps": 1e-3})", rising),
       rates_of(", MODE: max, PATIENCE: 4, THRESHOLD_MODE: abs, THRESHOLD: 0.005, COOLDOWN: 1",
                R"({"mode": "max", "patience": 4, "threshold_mode": "abs", "threshold": 0.005, "cooldown": 1})",
                rising)});
}
