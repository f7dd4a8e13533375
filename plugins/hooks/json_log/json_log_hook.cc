#include <gantry/gantry.h>
#include <gantry/json.h>
#include <gantry/line_means.h>
#include <gantry/world.h>

#include <filesystem>

#include "line_file.h"

namespace {

constexpr const char* kPlaceKeys[] = {"mode", "line", "epoch", "iter", "iteration", "step"};

/// Values that are called like a part of the line's place get another name.
std::string key_of(const std::string& name) {
  for (const char* taken : kPlaceKeys)
    if (name == taken) return "value/" + name;
  return name;
}

/// Writes a line of JSON every LOG_INTERVAL iterations of a mode, and one at each phase's end.
class JsonLogHook final : public gantry::Hook, public gantry::Stateful, public gantry::ResumeObserver {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(100);
    p.neutral();
    p.add<int64_t>("LOG_INTERVAL", 10)
        .unit("iterations")
        .no_effect_on_result()
        .help("A line every so many iterations of a mode; <= 0: only one at the end of each phase.");
    p.add<std::string>("FILE", "metrics.jsonl")
        .not_empty()
        .no_effect_on_result()
        .help("Where the lines go; a relative path is one below WORK_DIR.");
  }

  JsonLogHook(const gantry::Config& config, gantry::Context& context) : interval_(config.get<int64_t>("LOG_INTERVAL")) {
    const std::filesystem::path work_dir = context.work_dir();
    std::filesystem::path file = config.get<std::string>("FILE");
    if (file.string().find("://") != std::string::npos)
      throw config.error("FILE", "FILE must be a file on this machine: it grows while a run lasts");
    if (!file.has_filename()) throw config.error("FILE", "FILE must name a file, not a folder: " + file.string());
    if (context.dry_run()) file = file.filename();
    const std::string path = (work_dir / file).lexically_normal().string();
    if (!context.world().is_main()) return;
    file_ = context.shared<LineFile>("gantry-json-log:" + path, [&] { return std::make_shared<LineFile>(path); });
  }

  void before_solve(gantry::Solver& solver) override { trains_ = solver.total_max_iter() > 0; }
  void before_all_iter(gantry::Solver& solver) override {
    means_.begin_phase(solver);
    if (file_ != nullptr) file_->open(trains_);
  }

  void after_iter(gantry::Solver& solver) override {
    means_.add(solver);
    if (interval_ <= 0 || (solver.total_iter() + 1) % interval_ != 0) return;
    gantry::Scalars values = means_.take(solver);
    for (const auto& [name, value] : solver.collect_log_vars().entries()) values.set(name, value);
    write(solver, "iter", 1, values);
  }

  void after_epoch(gantry::Solver& solver) override { write(solver, "epoch", 0, means_.phase(solver)); }

  gantry::State state() const override {
    gantry::State state;
    state.merge("means", means_.state());
    if (file_ != nullptr) state.set_int("lines", file_->lines());
    return state;
  }
  void load_state(const gantry::State& state, int) override {
    means_.load_state(state.child("means"));
    if (file_ != nullptr && state.has("lines")) file_->keep(state.integer("lines"));
  }
  void on_resume(gantry::Solver&) override {
    if (file_ != nullptr) file_->settle();
  }

 private:
  /// `running`: iterations of this mode that are done but not counted yet.
  void write(const gantry::Solver& solver, const char* line, int64_t running, const gantry::Scalars& values) {
    const std::string mode = gantry::mode_name(solver.mode());
    if (file_ == nullptr || !file_->claim(mode + "/" + line, solver.total_iter() + running)) return;
    const int64_t trained = solver.iterations() + (solver.mode() == gantry::Mode::train ? running : 0);
    std::string text = gantry::cat("{\"mode\": ", gantry::json_string(mode), ", \"line\": \"", line,
                                   "\", \"epoch\": ", solver.epoch(), ", \"iter\": ", solver.iter() + running,
                                   ", \"iteration\": ", trained, ", \"step\": ", solver.step());
    for (const auto& [name, value] : values.entries())
      text += gantry::cat(", ", gantry::json_string(key_of(name)), ": ", gantry::json_number(value));
    file_->append(text + "}");
  }

  const int64_t interval_;
  bool trains_ = true;
  std::shared_ptr<LineFile> file_;  // null where another process writes
  gantry::LineMeans means_;
};

}  // namespace

GANTRY_PLUGIN("gantry-json-log", GANTRY_VERSION);
GANTRY_HOOK(JsonLogHook, "JsonLogHook", "Writes metrics as lines of JSON: every few iterations and per phase.");
