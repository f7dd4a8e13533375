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
class LogHook final : public gantry::Hook {
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

  void before_all_iter(gantry::Solver& solver) override {
    PhaseLog& log = of(solver);
    log = PhaseLog{};
    log.start = log.last_end = log.window_start = Clock::now();
  }

  void before_iter(gantry::Solver& solver) override {
    PhaseLog& log = of(solver);
    log.window_data_seconds += seconds_between(log.last_end, Clock::now());
  }

  void after_iter(gantry::Solver& solver) override {
    PhaseLog& log = of(solver);
    const gantry::Batch& batch = solver.batch();
    const double weight = batch.weight;
    log.cursor = 0;
    for (const auto& [name, value] : solver.outputs().entries()) log.add(name, value, weight);
    for (const auto& [name, value] : solver.log_values().entries()) log.add(name, value, 1);
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
  struct Average {
    std::string name;
    gantry::MeanMeter window, phase;
  };
  struct PhaseLog {
    Clock::time_point start, window_start, last_end;
    double window_data_seconds = 0;
    int64_t samples = 0, iterations = 0;  // since the last line
    std::vector<Average> averages;
    std::size_t cursor = 0;

    void add(const std::string& name, const gantry::Value& value, double weight) {
      const auto* tensor = std::get_if<at::Tensor>(&value);
      const auto* number = std::get_if<double>(&value);
      if (!(tensor != nullptr && tensor->defined() && tensor->dim() == 0) && number == nullptr) return;
      // Names come in the same order nearly always: the search is for the iteration that has one more.
      if (cursor >= averages.size() || averages[cursor].name != name) {
        cursor = 0;
        while (cursor < averages.size() && averages[cursor].name != name) ++cursor;
        if (cursor == averages.size()) averages.push_back({name, {}, {}});
      }
      Average& average = averages[cursor++];
      if (tensor != nullptr) {
        average.window.add(*tensor, weight);
        average.phase.add(*tensor, weight);
      } else {
        average.window.add(*number, weight);
        average.phase.add(*number, weight);
      }
    }
  };

  PhaseLog& of(const gantry::Solver& solver) { return logs_[static_cast<int>(solver.mode())]; }

  static std::string head(const gantry::Solver& solver) {
    std::string text;
    if (solver.epoch() > 0) {
      text = "epoch " + std::to_string(solver.epoch());
      if (solver.max_epochs() > 0) text += "/" + std::to_string(solver.max_epochs());
      text += " ";
    }
    return text + gantry::mode_name(solver.mode());
  }

  /// epoch 1/5 train [ 50/469] loss 0.9123 (1.3120) lr 0.0500 | 85012 samples/s, data 3 %
  void print(gantry::Solver& solver, PhaseLog& log, int64_t iterations_done) {
    const Clock::time_point now = Clock::now();
    const std::string total = std::to_string(solver.epoch_max_iter());
    std::string done = std::to_string(iterations_done);
    done.insert(0, total.size() - std::min(total.size(), done.size()), ' ');
    std::string line = head(solver) + " [" + done + "/" + total + "]";
    for (Average& average : log.averages) {
      if (average.window.weight() == 0) continue;
      line += " " + average.name + " " + gantry::short_number(average.window.mean()) + " (" +
              gantry::short_number(average.phase.mean()) + ")";
      average.window.reset();
    }
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
