#include <gantry/gantry.h>
#include <gantry/model.h>
#include <gantry/name_pattern.h>
#include <gantry/state.h>
#include <gantry/step_engine.h>
#include <gantry/world.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "weights_export.h"

namespace {

/// "5GB", "500MB", "1GiB", "5e9"; nothing for what is no size.
std::optional<int64_t> bytes_from(const std::string& text) {
  struct Unit {
    const char* name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"", 1},      {"B", 1},      {"KB", 1e3},      {"MB", 1e6},     {"GB", 1e9},
                             {"TB", 1e12}, {"KIB", 1024}, {"MIB", 1048576}, {"GIB", 1 << 30}};
  char* end = nullptr;
  const double count = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(count)) return std::nullopt;
  std::string unit;
  for (; *end != '\0'; ++end)
    if (*end != ' ') unit += static_cast<char>(*end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);
  for (const Unit& known : kUnits) {
    const double bytes = count * known.bytes;
    if (unit == known.name && std::fabs(bytes) < 9e18) return static_cast<int64_t>(bytes);
  }
  return std::nullopt;
}

std::optional<at::ScalarType> dtype_named(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "float16") return at::kHalf;
  if (name == "bfloat16") return at::kBFloat16;
  return std::nullopt;
}

/// Writes the model's weights at intervals and at the end.
class SafetensorsHook final : public gantry::Hook {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(200);
    p.neutral();
    p.add<gantry::Interval>("INTERVAL", {1000, gantry::Interval::Unit::iterations})
        .unit("iterations")
        .no_effect_on_result()
        .help("A file every so often: 1000, 500 steps, 2 epochs. <= 0: at the end of training alone.");
    p.add<std::string>("SAVE_NAME_PREFIX", "ldm_step")
        .not_empty()
        .no_effect_on_result()
        .help("Files are named <prefix>-<iterations done>.");
    p.add<std::string>("SHARD_SIZE", "5GB")
        .no_effect_on_result()
        .help("Weights that are larger go into several files with an index: 500MB, 5GB, bytes. <= 0: one file always.");
    p.optional<std::string>("DTYPE")
        .choices({"float32", "float16", "bfloat16"})
        .no_effect_on_result()
        .help("What floating-point tensors are cast to. Unset: they stay as they are.");
    p.add<bool>("USE_EMA", false)
        .no_effect_on_result()
        .help("Whether to write the averages of ModelEmaHook in place of the weights that are trained.");
    p.add<std::vector<std::string>>("KEYS", std::vector<std::string>{})
        .no_effect_on_result()
        .help("Regular expressions: only names that one of them is found in. None: all names.");
    p.add<std::vector<std::string>>("IGNORE_KEYS", std::vector<std::string>{})
        .no_effect_on_result()
        .help("Regular expressions: names that one of them is found in are left out.");
  }

  SafetensorsHook(const gantry::Config& config, gantry::Context& context)
      : config_(config),
        interval_(config.get<gantry::Interval>("INTERVAL")),
        prefix_(config.get<std::string>("SAVE_NAME_PREFIX")),
        folder_(context.work_dir() + "/safetensors"),
        dtype_(config.has("DTYPE") ? dtype_named(config.get<std::string>("DTYPE")) : std::nullopt),
        use_ema_(config.get<bool>("USE_EMA")),
        keys_(gantry::name_patterns(config, "KEYS")),
        ignored_(gantry::name_patterns(config, "IGNORE_KEYS")),
        logger_(context.logger()) {
    if (config.path().find("EVAL_HOOKS") != std::string::npos || config.path().find("TEST_HOOKS") != std::string::npos)
      throw gantry::ConfigError(config.where(), "SafetensorsHook watches training: put it under HOOKS or TRAIN_HOOKS");
    if (prefix_.find('/') != std::string::npos || prefix_.front() == '.')
      throw config.error("SAVE_NAME_PREFIX", "begins a file's name: it has no '/' and does not begin with '.'");
    if (interval_.unit == gantry::Interval::Unit::seconds)
      throw config.error("INTERVAL", "counts iterations, steps or epochs, not time: files are named by iterations");
    const std::string size = config.get<std::string>("SHARD_SIZE");
    const std::optional<int64_t> bytes = bytes_from(size);
    if (!bytes.has_value())
      throw config.error("SHARD_SIZE", "is '" + size + "'; write a size such as 500MB, 5GB or a number of bytes");
    shard_bytes_ = *bytes;
  }

  void before_solve(gantry::Solver& solver) override {
    if (weights_of(solver, {}).tensors.empty())
      throw config_.error(keys_.empty() ? "IGNORE_KEYS" : "KEYS", "leaves nothing to write of the model's names");
    if (solver.world().is_main()) remove_leftovers(folder_);
  }

  void after_iter(gantry::Solver& solver) override {
    if (solver.mode() != gantry::Mode::train) return;
    const bool counts_epochs = interval_.unit == gantry::Interval::Unit::epochs;
    due_ = due_ || (!counts_epochs && solver.due(interval_));
    if (!checked_ && solver.backward_step()) {
      averages(solver);  // that there are none is said now, not after a thousand iterations
      checked_ = true;
    }
    // Within a window the weights are those of the last step: they are written once it is closed.
    if (!due_ || (solver.engine() != nullptr && solver.engine()->window_open())) return;
    due_ = false;
    write(solver, solver.total_iter() + 1);
  }

  void after_epoch(gantry::Solver& solver) override {
    if (solver.mode() != gantry::Mode::train) return;
    const bool counts_epochs = interval_.unit == gantry::Interval::Unit::epochs;
    if ((counts_epochs && solver.due(interval_)) || solver.last_epoch()) write(solver, solver.iterations());
  }

  void after_solve(gantry::Solver& solver) override {
    // A hook that ended training in its own after_epoch may have come after this one.
    const gantry::ExitReason reason = solver.exit_reason();
    const bool complete = reason == gantry::ExitReason::done || reason == gantry::ExitReason::finish_requested;
    if (complete && solver.total_max_iter() > 0 && solver.iterations() > 0) write(solver, solver.iterations());
  }

 private:
  /// What is to be written: what is wanted of the model, with the averages that there are in place of its own.
  Weights weights_of(const gantry::Solver& solver, const gantry::State& averages) const {
    Weights weights;
    std::vector<gantry::NamedParameter> all = gantry::named_parameters(*solver.model());
    for (gantry::NamedParameter& buffer : gantry::named_buffers(*solver.model())) all.push_back(std::move(buffer));
    for (const gantry::NamedParameter& item : all) {
      std::vector<std::string> names;
      if (wanted(item.name)) names.push_back(item.name);
      for (const std::string& alias : item.aliases)
        if (wanted(alias)) names.push_back(alias);
      if (names.empty()) continue;
      at::Tensor tensor = averages.has(item.name) ? averages.tensor(item.name) : item.tensor.detach();
      if (dtype_.has_value() && tensor.is_floating_point()) tensor = tensor.to(*dtype_);
      weights.tensors.push_back({names.front(), std::move(tensor), {names.begin() + 1, names.end()}});
    }
    return weights;
  }

  bool wanted(const std::string& name) const {
    return (keys_.empty() || gantry::any_found_in(keys_, name)) && !gantry::any_found_in(ignored_, name);
  }

  gantry::State averages(const gantry::Solver& solver) const {
    if (!use_ema_) return {};
    gantry::State state = solver.evaluation_weights();
    if (state.empty())
      throw config_.error("USE_EMA", "is true, and no hook has averaged weights: add ModelEmaHook to TRAIN_HOOKS");
    return state;
  }

  void write(const gantry::Solver& solver, int64_t iterations) {
    if (written_ == iterations || !solver.world().is_main()) return;
    Weights weights = weights_of(solver, averages(solver));
    weights.metadata = {
        {"format", "pt"}, {"iteration", std::to_string(iterations)}, {"epoch", std::to_string(solver.epoch())}};
    const std::string path = export_weights(weights, folder_, prefix_ + "-" + std::to_string(iterations), shard_bytes_);
    logger_.info("wrote safetensors/" + path.substr(path.rfind('/') + 1) + " (" + gantry::bytes_text(weights.bytes()) +
                 ")");
    written_ = iterations;
  }

  const gantry::Config config_;
  const gantry::Interval interval_;
  const std::string prefix_, folder_;
  const std::optional<at::ScalarType> dtype_;
  const bool use_ema_;
  const std::vector<gantry::NamePattern> keys_, ignored_;
  const gantry::Logger logger_;
  int64_t shard_bytes_ = 0;

  bool due_ = false, checked_ = false;
  int64_t written_ = -1;  // iterations done by the latest file
};

}  // namespace

GANTRY_PLUGIN("gantry-safetensors", GANTRY_VERSION);
GANTRY_HOOK(SafetensorsHook, "SafetensorsHook",
            "Writes the weights as safetensors files: at intervals, and at the end.");
