#include <ATen/core/Tensor.h>

#include "gantry/safetensors.h"
#include "regress/trials.h"

// Optimizers whose step counters or moments were not the checkpoint's.

namespace {

using namespace trials;
using e2e::at_iteration;
using e2e::at_point;
using e2e::Job;

const std::string kOptimizer = "optimizer.safetensors";

/// The parameters of a checkpoint whose step counter is not `steps`.
std::vector<std::string> other_counters(const std::string& checkpoint, double steps, int64_t& counted) {
  const gantry::SafetensorsFile file = gantry::SafetensorsFile::open(checkpoint + "/" + kOptimizer);
  std::vector<std::string> others;
  counted = 0;
  for (const auto& entry : file.entries()) {
    if (!entry.name.ends_with("/step")) continue;
    ++counted;
    if (file.tensor(entry.name).item().toDouble() != steps) others.push_back(entry.name);
  }
  return others;
}

}  // namespace

TEST_CASE("the step counters of all groups go on where they were and so does the bias correction") {
  const Changes changes = {"SOLVER.MAX_EPOCHS=2",
                           "SOLVER.OPTIMIZER={NAME: AdamW, LEARNING_RATE: 0.01, PARAM_GROUPS: [{MATCH: bias$, "
                           "LEARNING_RATE: 0.003, WEIGHT_DECAY: 0}, {MATCH: norm, LEARNING_RATE: 0.001}]}"};
  Job undisturbed, stopped;
  undisturbed.run(changes);
  stopped.run(changes + Changes{at_iteration(13)}, 75);
  int64_t counted = 0;
  CHECK(other_counters(stopped.checkpoint(16), 6, counted).empty());  // windows of 3 3 3 1 3 3
  CHECK(counted == 6);                                                // conv, norm and head, weight and bias each
  stopped.resume(changes + Changes{at_iteration(17)}, 75);
  CHECK(other_counters(stopped.checkpoint(19), 7, counted).empty());
  stopped.resume(changes);
  CHECK(other_counters(stopped.checkpoint(20), 8, counted).empty());
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("an optimizer that was made with other settings has the moments and counters of the checkpoint") {
  const Changes changes = {"SOLVER.MAX_EPOCHS=2"};
  const auto optimizer = [](const std::string& keys) { return "SOLVER.OPTIMIZER={NAME: AdamW, " + keys + "}"; };
  Job job;
  // Stopped twice within one evaluation, so that nothing is trained between.
  job.run(changes + Changes{optimizer("LEARNING_RATE: 0.01, BETAS: [0.9, 0.99], WEIGHT_DECAY: 0.1")} +
              at_point("eval.after_iter", 1, 1),
          75);
  const std::string saved = job.dir.read("work/checkpoints/last/" + kOptimizer);
  const std::string weights = job.dir.read("work/checkpoints/last/model.safetensors");
  int64_t counted = 0;
  CHECK(other_counters(job.work("checkpoints/last"), 4, counted).empty());
  CHECK(counted == 6);
  const Changes others = {optimizer("LEARNING_RATE: 0.5, BETAS: [0.5, 0.6], WEIGHT_DECAY: 0"),
                          "SOLVER.RESUME_FROM=auto", "--allow-config-change"};
  const std::size_t trained = job.losses().size();
  job.run(changes + others + at_point("eval.after_iter", 1, 0), 75);
  CHECK(job.losses().size() == trained);
  CHECK(job.dir.read("work/checkpoints/last/" + kOptimizer) == saved);
  CHECK(job.dir.read("work/checkpoints/last/model.safetensors") == weights);
  // And what the settings say holds from the next step on.
  job.run(changes + others);
  CHECK(job.dir.read("work/checkpoints/last/" + kOptimizer) != saved);
}
