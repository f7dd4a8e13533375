#include <gantry/gantry.h>
#include <gantry/line_means.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "device_memory.h"

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

/// "0:00:07", "12:34:56"
std::string duration_text(double seconds) {
  const auto all = static_cast<long long>(std::llround(std::clamp(seconds, 0.0, 1e12)));
  char text[48];
  std::snprintf(text, sizeof text, "%lld:%02d:%02d", all / 3600, static_cast<int>(all / 60 % 60),
                static_cast<int>(all % 60));
  return text;
}

/// Prints a line every LOG_INTERVAL iterations, and one for the rest of a phase. Values stay on their device until a
/// line is due.
class LogHook final : public gantry::Hook, public gantry::ResumeObserver, public gantry::Stateful {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(100);
    p.neutral();
    p.add<int64_t>("LOG_INTERVAL", 10)
        .unit("iterations")
        .no_effect_on_result()
        .help("A line every so many iterations of a phase; <= 0: only the line at the end of each phase.");
    p.optional<int64_t>("INTERVAL")
        .unit("iterations")
        .no_effect_on_result()
        .help("Another name of LOG_INTERVAL, which it overrides.");
    p.add<bool>("SHOW_GPU_MEM", false)
        .no_effect_on_result()
        .help("Adds the memory of this process's GPU that tensors take, now and at most.");
  }

  LogHook(const gantry::Config& config, gantry::Context& context)
      : interval_(config.get<int64_t>(config.has("INTERVAL") ? "INTERVAL" : "LOG_INTERVAL")),
        show_memory_(config.get<bool>("SHOW_GPU_MEM") && context.device().is_cuda()),
        device_(context.device()) {
    if (config.get<bool>("SHOW_GPU_MEM") && !show_memory_)
      context.logger().info("SHOW_GPU_MEM has nothing to show: this run uses no GPU");
  }

  void before_solve(gantry::Solver&) override { start_ = Clock::now(); }
  void before_all_iter(gantry::Solver& solver) override {
    means_.begin_phase(solver);
    begin(of(solver));
  }
  void on_resume(gantry::Solver&) override { begin(windows_[static_cast<int>(gantry::Mode::train)]); }

  void before_iter(gantry::Solver& solver) override {
    Window& window = of(solver);
    window.data_seconds += seconds_between(window.last_end, Clock::now());
  }

  void after_iter(gantry::Solver& solver) override {
    Window& window = of(solver);
    means_.add(solver);
    window.samples += solver.batch().size();
    const bool train = solver.mode() == gantry::Mode::train;
    if (train && ++trained_ == 1) first_end_ = Clock::now();
    if (interval_ > 0 && (counted(solver) + 1) % interval_ == 0) print(solver, 1, means_.take(solver));
    window.last_end = Clock::now();
  }

  void after_all_iter(gantry::Solver& solver) override {
    const gantry::Scalars rest = means_.take(solver);
    if (of(solver).samples == 0 && rest.entries().empty()) return;
    print(solver, 0, rest);
  }

  gantry::State state() const override { return means_.state(); }
  void load_state(const gantry::State& state, int) override { means_.load_state(state); }

 private:
  /// Since the last line, in this process.
  struct Window {
    Clock::time_point start, last_end;
    double data_seconds = 0;
    int64_t samples = 0;
  };

  static void begin(Window& window) {
    window = Window{};
    window.start = window.last_end = Clock::now();
  }

  Window& of(const gantry::Solver& solver) { return windows_[static_cast<int>(solver.mode())]; }

  /// Where MAX_STEPS limits the training, its iterations are counted from its start.
  static bool of_whole_run(const gantry::Solver& solver) {
    return solver.max_steps() > 0 && solver.mode() == gantry::Mode::train;
  }

  static int64_t counted(const gantry::Solver& solver) {
    return of_whole_run(solver) ? solver.total_iter() : solver.iter();
  }

  /// epoch 1/5 train [ 50/469] loss 0.9123 (1.3120) lr 0.0500 | 85012 samples/s, data 3 %, 0:00:07 elapsed, eta 0:01:10
  /// `running`: iterations that are done but not counted yet.
  void print(gantry::Solver& solver, int64_t running, const gantry::Scalars& values) {
    Window& window = of(solver);
    const Clock::time_point now = Clock::now();
    const std::string total = std::to_string(of_whole_run(solver) ? solver.max_steps() : solver.epoch_max_iter());
    std::string count = std::to_string(counted(solver) + running);
    count.insert(0, total.size() - std::min(total.size(), count.size()), ' ');
    std::string line = solver.phase_text() + " [" + count + "/" + total + "]";
    for (const auto& [name, value] : values.entries())
      line += " " + name + " " + gantry::short_number(value) + " (" +
              gantry::short_number(means_.phase_mean(solver, name)) + ")";
    for (const auto& [name, value] : solver.collect_log_vars().entries())
      line += " " + name + " " + gantry::short_number(value);
    line += " | ";
    if (const double seconds = seconds_between(window.start, now); seconds > 0 && window.samples > 0) {
      line += whole(static_cast<double>(window.samples) / seconds) + " samples/s, data " +
              whole(100 * window.data_seconds / seconds) + " %, ";
    }
    line += duration_text(seconds_between(start_, now)) + " elapsed";
    if (solver.mode() == gantry::Mode::train) line += time_left(solver, running, now);
    if (show_memory_) line += ", " + device_memory_text(device_);
    solver.logger().info(line);
    begin(window);
  }

  /// ", eta 0:12:30", once it is known: at the pace of this process, evaluations and saves included. The first
  /// iteration doesn't count, which may have taken long for reasons of its own.
  std::string time_left(const gantry::Solver& solver, int64_t running, Clock::time_point now) const {
    const int64_t left = solver.total_max_iter() - solver.iterations() - running;
    const double seconds = seconds_between(first_end_, now);
    if (trained_ < 2 || left < 0) return "";
    return ", eta " + duration_text(seconds / static_cast<double>(trained_ - 1) * static_cast<double>(left));
  }

  const int64_t interval_;
  const bool show_memory_;
  const c10::Device device_;
  gantry::LineMeans means_;
  Window windows_[3];
  Clock::time_point start_, first_end_;
  int64_t trained_ = 0;  // iterations of training in this process
};

}  // namespace

GANTRY_PLUGIN("gantry-log", GANTRY_VERSION);
GANTRY_HOOK(LogHook, "LogHook", "Prints averages of the outputs, the learning rate and the throughput.");
