#include <gantry/gantry.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace {

using Clock = std::chrono::steady_clock;

Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string with_decimals(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// "0:07", "12:34", "3:25:07", "2 days 3:25:07"
std::string duration_text(double seconds) {
  const auto all = static_cast<int64_t>(std::llround(std::min(seconds, 1e12)));
  const int64_t days = all / 86400, hours = all / 3600 % 24, minutes = all / 60 % 60;
  char text[64];
  if (all < 3600) {
    std::snprintf(text, sizeof text, "%d:%02d", static_cast<int>(minutes), static_cast<int>(all % 60));
  } else {
    std::snprintf(text, sizeof text, "%d:%02d:%02d", static_cast<int>(hours), static_cast<int>(minutes),
                  static_cast<int>(all % 60));
  }
  if (days == 0) return text;
  return std::to_string(days) + (days == 1 ? " day " : " days ") + text;
}

class ProgressHook final : public gantry::Hook {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(100);
    p.neutral();
    p.add<double>("REFRESH_SECONDS", 0.5)
        .unit("seconds")
        .above(0)
        .no_effect_on_result()
        .help("On a terminal: the bar is drawn anew at most this often.");
    p.add<double>("LINE_SECONDS", 60)
        .unit("seconds")
        .above(0)
        .no_effect_on_result()
        .help("Where nobody looks at a terminal: a log line at most this often.");
  }

  ProgressHook(const gantry::Config& config, gantry::Context&)
      : refresh_(to_duration(std::min(1e9, config.get<double>("REFRESH_SECONDS")))),
        line_(to_duration(std::min(1e9, config.get<double>("LINE_SECONDS")))) {}

  void before_solve(gantry::Solver& solver) override {
    interactive_ = solver.logger().interactive();
    due_ = Clock::now() + period();
  }

  void after_iter(gantry::Solver& solver) override {
    const Clock::time_point now = Clock::now();
    phases_[static_cast<int>(solver.mode())].count(now);
    if (solver.mode() == gantry::Mode::train) {
      training_.count(now);
      training_left_ = solver.total_max_iter() - solver.total_iter() - 1;
    }
    if (now < due_) return;
    due_ = now + period();
    if (interactive_) {
      solver.logger().status(bar(solver, now));
      shown_ = true;
    } else {
      solver.logger().info(line(solver, now));
    }
  }

  void after_all_iter(gantry::Solver& solver) override {
    phases_[static_cast<int>(solver.mode())] = Pace{};
    remove(solver);
  }
  void after_solve(gantry::Solver& solver) override { remove(solver); }

 private:
  /// Iterations per second, from the end of the first one in this process: that one may have taken long for reasons of
  /// its own, and what a resumed run did before says nothing.
  class Pace {
   public:
    void count(Clock::time_point now) {
      if (iterations_++ == 0) start_ = now;
    }
    /// 0: not known yet.
    double per_second(Clock::time_point now) const {
      const double seconds = seconds_between(start_, now);
      return iterations_ > 1 && seconds > 0 ? static_cast<double>(iterations_ - 1) / seconds : 0;
    }
    bool begun() const { return iterations_ > 0; }

   private:
    int64_t iterations_ = 0;
    Clock::time_point start_;
  };

  Clock::duration period() const { return interactive_ ? refresh_ : line_; }

  void remove(gantry::Solver& solver) {
    if (shown_) solver.logger().status("");
    shown_ = false;
  }

  static double share_done(const gantry::Solver& solver) {
    const double all = static_cast<double>(std::max<int64_t>(1, solver.epoch_max_iter()));
    return std::min(1.0, static_cast<double>(solver.iter() + 1) / all);
  }

  static std::string count(const gantry::Solver& solver) {
    return std::to_string(solver.iter() + 1) + "/" + std::to_string(solver.epoch_max_iter());
  }

  /// ", 120 iters/s, 12:34 left", as far as it is known: until all training is done, or until this phase is where
  /// nothing is trained.
  std::string pace_and_time_left(const gantry::Solver& solver, Clock::time_point now) const {
    const Pace& phase = phases_[static_cast<int>(solver.mode())];
    std::string text;
    if (const double rate = phase.per_second(now); rate > 0)
      text += ", " + with_decimals(rate, rate < 10 ? 2 : 0) + " iters/s";
    const double rate = (training_.begun() ? training_ : phase).per_second(now);
    const int64_t left = training_.begun() ? training_left_ : solver.epoch_max_iter() - solver.iter() - 1;
    if (rate > 0 && left >= 0) text += ", " + duration_text(static_cast<double>(left) / rate) + " left";
    return text;
  }

  /// epoch 3/10 train [########............]  42 % 197/469, 120 iters/s, 3:25 left
  std::string bar(const gantry::Solver& solver, Clock::time_point now) const {
    constexpr int kWidth = 20;
    const double share = share_done(solver);
    const auto full = static_cast<std::size_t>(share * kWidth);
    char percent[8];
    std::snprintf(percent, sizeof percent, "%3d %%", static_cast<int>(share * 100));
    return solver.phase_text() + " [" + std::string(full, '#') + std::string(kWidth - full, '.') + "] " + percent +
           " " + count(solver) + pace_and_time_left(solver, now);
  }

  /// epoch 3/10 train 42 % (197/469), 120 iters/s, 3:25 left
  std::string line(const gantry::Solver& solver, Clock::time_point now) const {
    return solver.phase_text() + " " + std::to_string(static_cast<int>(share_done(solver) * 100)) + " % (" +
           count(solver) + ")" + pace_and_time_left(solver, now);
  }

  Clock::duration refresh_, line_;
  bool interactive_ = false, shown_ = false;
  Clock::time_point due_;
  Pace phases_[3], training_;
  int64_t training_left_ = 0;
};

}  // namespace

GANTRY_PLUGIN("gantry-progress", GANTRY_VERSION);
GANTRY_HOOK(ProgressHook, "ProgressHook", "A progress bar, or a line now and then, with the time left.");
