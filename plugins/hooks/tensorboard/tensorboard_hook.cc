#include <gantry/gantry.h>
#include <gantry/line_means.h>
#include <gantry/probe.h>
#include <gantry/world.h>

#include <filesystem>

#include "event_writer.h"
#include "summaries.h"

namespace {

/// FNV-1a: to know whether a resumed run has other settings.
int64_t digest(const Settings& settings) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const auto& [name, value] : settings)
    for (const char c : gantry::cat(name, '=', value, '\n'))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return static_cast<int64_t>(hash);
}

/// Writes event files for TensorBoard: scalars every LOG_INTERVAL iterations and per phase, what probes show, the
/// configuration. Between lines values stay on their device.
class TensorboardLogHook final : public gantry::Hook, public gantry::Stateful, public gantry::ResumeObserver {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(100);
    p.neutral();
    p.optional<std::string>("LOG_DIR").not_empty().no_effect_on_result().help(
        "The folder of the event files; unset: WORK_DIR/tensorboard.");
    p.add<int64_t>("LOG_INTERVAL", 1000)
        .unit("iterations")
        .no_effect_on_result()
        .help("Scalars and probes every so many iterations of a mode; <= 0: only at the end of each phase.");
    p.optional<int64_t>("INTERVAL")
        .unit("iterations")
        .no_effect_on_result()
        .help("Another name of LOG_INTERVAL, which it overrides.");
  }

  TensorboardLogHook(const gantry::Config& config, gantry::Context& context)
      : interval_(config.get<int64_t>(config.has("INTERVAL") ? "INTERVAL" : "LOG_INTERVAL")) {
    if (config.has("LOG_DIR") && config.get<std::string>("LOG_DIR").find("://") != std::string::npos)
      throw config.error("LOG_DIR", "LOG_DIR must be a folder on this machine: event files grow while a run lasts");
    if (!context.world().is_main()) return;
    std::filesystem::path folder = std::filesystem::path(context.work_dir()) / "tensorboard";
    if (config.has("LOG_DIR") && !context.dry_run()) folder = config.get<std::string>("LOG_DIR");
    const std::string path = std::filesystem::absolute(folder).lexically_normal().string();
    writer_ =
        context.shared<EventWriter>("gantry-tensorboard:" + path, [&] { return std::make_shared<EventWriter>(path); });
  }

  void before_solve(gantry::Solver& solver) override { trains_ = solver.total_max_iter() > 0; }

  void on_resume(gantry::Solver& solver) override {
    if (writer_ == nullptr) return;
    writer_->settle();
    begin(solver);
  }

  void before_epoch(gantry::Solver& solver) override { begin(solver); }

  void before_all_iter(gantry::Solver& solver) override {
    means_.begin_phase(solver);
    if (writer_ != nullptr && solver.mode() != gantry::Mode::train) solver.probes().request();
  }

  void before_iter(gantry::Solver& solver) override {
    if (writer_ != nullptr && solver.mode() == gantry::Mode::train && due(solver)) solver.probes().request();
  }

  void after_iter(gantry::Solver& solver) override {
    means_.add(solver);
    if (!due(solver)) return;
    gantry::Scalars values = means_.take(solver);
    for (const auto& [name, value] : solver.collect_log_vars().entries()) values.set(name, value);
    const std::string prefix = gantry::cat(gantry::mode_name(solver.mode()), "/iter/");
    const int64_t step = solver.total_iter() + 1;
    if (writer_ == nullptr || !writer_->claim(prefix, step)) return;
    write_scalars(prefix, step, values);
    if (solver.mode() == gantry::Mode::train) write_probes(solver, step);
    writer_->flush();
  }

  void after_all_iter(gantry::Solver& solver) override {
    if (writer_ == nullptr || solver.mode() == gantry::Mode::train) return;
    const std::string what = gantry::cat(gantry::mode_name(solver.mode()), "/probe/");
    if (writer_->claim(what, solver.iterations())) write_probes(solver, solver.iterations());
  }

  void after_epoch(gantry::Solver& solver) override {
    if (writer_ == nullptr) return;
    const std::string prefix = gantry::cat(gantry::mode_name(solver.mode()), "/epoch/");
    const int64_t step = phase_step(solver);
    if (writer_->claim(prefix, step)) write_scalars(prefix, step, means_.phase(solver));
    writer_->flush();
  }

  void after_solve(gantry::Solver& solver) override {
    if (writer_ == nullptr || !begun_) return;
    const gantry::ExitReason reason = solver.exit_reason();
    if (trains_ && reason != gantry::ExitReason::paused && writer_->claim("end", 0)) {
      const bool success = reason != gantry::ExitReason::failed;
      if (success) write(solver.iterations(), experiment_summary(solver.settings(), results(solver), now()));
      write(solver.iterations(), session_end_summary(success, now()));
    }
    writer_->flush();
  }

  gantry::State state() const override {
    gantry::State state;
    state.merge("means", means_.state());
    if (writer_ == nullptr) return state;
    state.set_int("events", writer_->events());
    state.set_int("described/settings", described_settings_);
    state.set_int("described/step", described_step_);
    return state;
  }

  void load_state(const gantry::State& state, int) override {
    means_.load_state(state.child("means"));
    if (writer_ == nullptr || !state.has("events")) return;
    writer_->keep(state.integer("events"));
    described_settings_ = state.integer("described/settings");
    described_step_ = state.integer("described/step");
  }

 private:
  static double now() { return seconds_since_1970(); }

  bool due(const gantry::Solver& solver) const { return interval_ > 0 && (solver.total_iter() + 1) % interval_ == 0; }

  /// Where MAX_STEPS limits the training, one epoch may have several evaluations.
  static int64_t phase_step(const gantry::Solver& solver) {
    return solver.max_steps() > 0 ? solver.iterations() : solver.epoch();
  }

  void write(int64_t step, const Message& summary) { writer_->add(step, summary); }

  void write_scalars(const std::string& prefix, int64_t step, const gantry::Scalars& values) {
    for (const auto& [name, value] : values.entries()) write(step, scalar_summary(prefix + name, value));
  }

  void write_probes(const gantry::Solver& solver, int64_t step) {
    const std::string prefix = gantry::cat(gantry::mode_name(solver.mode()), "/probe/");
    for (const gantry::Probe& probe : solver.probes().entries()) {
      const std::string tag = prefix + probe.name;
      switch (probe.kind) {
        case gantry::Probe::Kind::image:
          write(step, image_summary(tag, probe.value));
          break;
        case gantry::Probe::Kind::number:
          write(step, scalar_summary(tag, probe.number));
          break;
        case gantry::Probe::Kind::text:
          for (const std::string& text : probe.labels) write(step, text_summary(tag, text));
          break;
        case gantry::Probe::Kind::distribution:
          write(step, histogram_summary(tag, probe.value));
          break;
        case gantry::Probe::Kind::tensor:  // TensorBoard shows none as they are
          break;
      }
    }
  }

  /// Once for the training, and again where a resumed one has other settings.
  void begin(gantry::Solver& solver) {
    if (writer_ == nullptr || begun_) return;
    begun_ = true;
    writer_->open(trains_);
    if (!trains_) return;
    const int64_t step = solver.iterations(), settings = digest(solver.settings());
    const bool first = described_step_ < 0;
    if (!first && (settings == described_settings_ || step <= described_step_)) return;
    described_settings_ = settings;
    described_step_ = step;
    if (writer_->claim("config", first ? 0 : step)) {
      write(step, text_summary("config", "```yaml\n" + solver.config_text() + "\n```"));
      if (first) write(step, session_start_summary(solver.settings(), now()));
    }
    writer_->flush();
  }

  /// The tags of what the training ended with.
  static std::vector<std::pair<std::string, gantry::Mode>> results(const gantry::Solver& solver) {
    std::vector<std::pair<std::string, gantry::Mode>> tags;
    for (const gantry::Mode mode : {gantry::Mode::train, gantry::Mode::eval, gantry::Mode::test})
      for (const auto& entry : solver.metrics(mode).entries())
        tags.emplace_back(gantry::cat(gantry::mode_name(mode), "/epoch/", entry.first), mode);
    return tags;
  }

  const int64_t interval_;
  bool trains_ = true, begun_ = false;
  std::shared_ptr<EventWriter> writer_;  // null where another process writes
  gantry::LineMeans means_;
  int64_t described_settings_ = 0, described_step_ = -1;
};

}  // namespace

GANTRY_PLUGIN("gantry-tensorboard", GANTRY_VERSION);
GANTRY_HOOK(TensorboardLogHook, "TensorboardLogHook",
            "Writes scalars, pictures, distributions and the configuration for TensorBoard.");
