#include <gantry/base_solver.h>
#include <gantry/file_system.h>
#include <gantry/plugin.h>

#include <algorithm>
#include <cstdio>

#include "evaluated_data.h"

namespace {

/// Epochs, or steps, of training with evaluations between them, then a test: the flow of BaseSolver as it is, with what
/// an evaluation saw saved beside its figures.
class TrainValSolver final : public gantry::BaseSolver {
 public:
  static void declare(gantry::Parameters& p) {
    gantry::BaseSolver::declare(p);
    p.add<bool>("DO_FINAL_EVAL", true)
        .help("Whether METRICS are computed, over the whole of each evaluation and test.");
    p.add<bool>("SAVE_EVAL_DATA", false)
        .no_effect_on_result()
        .help(
            "Saves what METRICS look at (their KEYS) and EXTRA_KEYS, of each evaluation, as "
            "WORK_DIR/eval_data/eval_<epoch>.safetensors.");
    p.add<std::vector<std::string>>("EXTRA_KEYS", {})
        .no_effect_on_result()
        .help(
            "More names of the outputs or the batch for SAVE_EVAL_DATA; 'hidden.0' is the first of a list of tensors.");
  }

  TrainValSolver(const gantry::Config& config, gantry::Context& context)
      : BaseSolver(config, context), data_(keys_of(config)), saves_(config.get<bool>("SAVE_EVAL_DATA")) {}

  void construct_metrics() override {
    if (config().get<bool>("DO_FINAL_EVAL")) BaseSolver::construct_metrics();
  }

  gantry::Outputs run_step_eval(const gantry::Batch& batch, int64_t batch_index, int64_t total_iter,
                                int rank) override {
    gantry::Outputs outputs = BaseSolver::run_step_eval(batch, batch_index, total_iter, rank);
    // Not what hooks evaluate on the side.
    if (saves_ && solver().mode() == gantry::Mode::eval) data_.add(batch, outputs);
    return outputs;
  }

  void run_eval() override {
    data_.clear();
    BaseSolver::run_eval();
    // A pause abandons an evaluation.
    if (saves_ && solver().stop_requested() != gantry::Stop::pause) save();
    data_.clear();
  }

 private:
  static std::vector<std::string> keys_of(const gantry::Config& config) {
    std::vector<std::string> keys;
    const auto add = [&](const std::vector<std::string>& more) {
      for (const std::string& key : more)
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    };
    for (const gantry::Config& metric : config.get<std::vector<gantry::Config>>("METRICS"))
      if (metric.has("KEYS")) add(metric.get<std::vector<std::string>>("KEYS"));
    add(config.get<std::vector<std::string>>("EXTRA_KEYS"));
    return keys;
  }

  void save() {
    char name[64];
    if (solver().max_steps() > 0)
      std::snprintf(name, sizeof name, "/eval_data/eval_%08lld.safetensors",
                    static_cast<long long>(solver().iterations()));
    else
      std::snprintf(name, sizeof name, "/eval_data/eval_%05lld.safetensors", static_cast<long long>(solver().epoch()));
    gantry::PutTo file = context().files().put_to(context().work_dir() + name);
    data_.write(file.path());
    file.commit();
  }

  EvaluatedData data_;
  const bool saves_;
};

}  // namespace

GANTRY_PLUGIN("gantry-train-val", GANTRY_VERSION);
GANTRY_SOLVER(TrainValSolver, "TrainValSolver",
              "Trains for MAX_EPOCHS or MAX_STEPS, evaluates at EVAL_INTERVAL, then tests.");
