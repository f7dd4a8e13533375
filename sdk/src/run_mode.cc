#include "run_mode.h"

#include "gantry/text.h"

namespace gantry {

namespace {

std::string mode_of(const Config& solver) { return solver.has("MODE") ? solver.get<std::string>("MODE") : ""; }

}  // namespace

bool trains(const Config& solver) {
  const std::string mode = mode_of(solver);
  return solver.has("TRAIN_DATA") && (mode.empty() || mode == "train");
}

void check_mode(const Config& solver, std::vector<ConfigError>& problems) {
  const std::string mode = mode_of(solver);
  if (mode.empty()) return;
  const char* needs = mode == "train" ? "TRAIN_DATA" : mode == "eval" ? "EVAL_DATA" : "TEST_DATA";
  if (!solver.has(needs)) problems.push_back(solver.error("MODE", cat("MODE is ", mode, ", which needs ", needs)));
  if (mode == "train") return;
  const Config* model = solver.find("MODEL");
  const bool starts = solver.has("RESUME_FROM") || (model != nullptr && model->has("PRETRAINED_MODEL"));
  if (!starts)
    problems.push_back(
        solver.error("MODE", cat("MODE is ", mode,
                                 ", and nothing says with which weights: give RESUME_FROM, a checkpoint, or "
                                 "MODEL.PRETRAINED_MODEL, a .safetensors file")));
}

Config for_mode(const Config& solver) {
  const std::string mode = mode_of(solver);
  if (mode != "eval" && mode != "test") return solver;
  Config used = solver.without("TRAIN_DATA").without(mode == "eval" ? "TEST_DATA" : "EVAL_DATA");
  for (const char* key : {"TRAIN_HOOKS", mode == "eval" ? "TEST_HOOKS" : "EVAL_HOOKS"})
    if (used.find(key) != nullptr) used = used.with(key, Config::list({}, solver.where(key)));
  return used;
}

}  // namespace gantry
