#include <gantry/gantry.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string whole(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

/// Averages what each iteration puts out and prints a line every LOG_INTERVAL iterations, and one for the rest
/// of a phase. Values stay on their device until a line is due.
class LogHook final : public gantry::Hook, public gantry::ResumeObserver {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(100);
    p.neutral();
    p.add<int64_t>("LOG_INTERVAL", 10)
        .unit("iterations")
        .no_effect_on_result()
        .help("A line every so many iterations of a phase; <= 0: only the line at the end of each phase.");
  }

  LogHook(const gantry::Config& config, gantry::Context&) : interval_(config.get<int64_t>("LOG_INTERVAL")) {}

  void before_all_iter(gantry::Solver& solver) override { begin(of(solver)); }
  void on_resume(gantry::Solver&) override { begin(logs_[static_cast<int>(gantry::Mode::train)]); }

  void before_iter(gantry::Solver& solver) override {
    PhaseLog& log = of(solver);
    log.window_data_seconds += seconds_between(log.last_end, Clock::now());
  }

  void after_iter(gantry::Solver& solver) override {
    PhaseLog& log = of(solver);
    const gantry::Batch& batch = solver.batch();
    const double weight = batch.weight;
    log.window.add(solver.outputs(), weight);
    for (gantry::FieldMeans* means : {&log.window_values, &log.phase_values}) means->add(solver.log_values(), 1);
    log.samples += batch.size();
    ++log.iterations;
    if (interval_ > 0 && (solver.iter() + 1) % interval_ == 0) print(solver, log, solver.iter() + 1);
    log.last_end = Clock::now();
  }

  void after_all_iter(gantry::Solver& solver) override {
    PhaseLog& log = of(solver);
    if (log.iterations > 0) print(solver, log, solver.iter());  // the last one is counted by now
  }

 private:
  struct PhaseLog {
    Clock::time_point window_start, last_end;
    double window_data_seconds = 0;
    int64_t samples = 0, iterations = 0;  // since the last line
    // Of the outputs, and of what hooks log; since the last line, and since the phase began.
    gantry::FieldMeans window, window_values, phase_values;  // the outputs' means over the phase are the solver's
  };

  static void begin(PhaseLog& log) {
    log = PhaseLog{};
    log.last_end = log.window_start = Clock::now();
  }

  PhaseLog& of(const gantry::Solver& solver) { return logs_[static_cast<int>(solver.mode())]; }

  /// " loss 0.9123 (1.3120)" for each value that came since the last line; forgets those.
  static std::string averages(gantry::FieldMeans& window, const gantry::FieldMeans& phase) {
    std::string text;
    for (const auto& [name, mean] : window.entries()) {
      if (mean.weight() == 0) continue;
      text += " " + name + " " + gantry::short_number(mean.mean()) + " (" +
              gantry::short_number(phase.find(name)->mean()) + ")";
    }
    window.reset();
    return text;
  }

  /// epoch 1/5 train [ 50/469] loss 0.9123 (1.3120) lr 0.0500 | 85012 samples/s, data 3 %
  void print(gantry::Solver& solver, PhaseLog& log, int64_t iterations_done) {
    const Clock::time_point now = Clock::now();
    const std::string total = std::to_string(solver.epoch_max_iter());
    std::string done = std::to_string(iterations_done);
    done.insert(0, total.size() - std::min(total.size(), done.size()), ' ');
    std::string line = solver.phase_text() + " [" + done + "/" + total + "]";
    line += averages(log.window, solver.phase_means()) + averages(log.window_values, log.phase_values);
    for (const auto& [name, value] : solver.collect_log_vars().entries())
      line += " " + name + " " + gantry::short_number(value);
    const double seconds = seconds_between(log.window_start, now);
    if (seconds > 0) {
      line += " | " + whole(static_cast<double>(log.samples) / seconds) + " samples/s, data " +
              whole(100 * log.window_data_seconds / seconds) + " %";
    }
    solver.logger().info(line);
    log.window_start = now;
    log.window_data_seconds = 0;
    log.samples = log.iterations = 0;
  }

  int64_t interval_;
  PhaseLog logs_[3];
};

}  // namespace

GANTRY_PLUGIN("gantry-log", GANTRY_VERSION);
GANTRY_HOOK(LogHook, "LogHook", "Prints averages of the outputs, the learning rate and the throughput.");
