#include <gantry/gantry.h>
#include <gantry/model.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "device_peak.h"

namespace {

using Clock = std::chrono::steady_clock;

/// What training costs, in samples, operations and time.
class ThroughputHook final : public gantry::Hook, public gantry::EvalObserver {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(90);
    p.neutral();
    p.single_instance();
    p.add<int64_t>("LOG_INTERVAL", 100)
        .unit("iterations")
        .no_effect_on_result()
        .help("Training iterations between two lines. <= 0: none but those at the end.");
    p.optional<double>("PEAK_TFLOPS")
        .above(0)
        .no_effect_on_result()
        .help(
            "What the device can do at most, in 10^12 operations per second. Default: what is known of it by its "
            "name.");
  }

  ThroughputHook(const gantry::Config& config, gantry::Context& context)
      : interval_(config.get<int64_t>("LOG_INTERVAL")), device_(context.device()), logger_(context.logger()) {
    if (config.has("PEAK_TFLOPS")) peak_ = Peak{config.get<double>("PEAK_TFLOPS"), "PEAK_TFLOPS"};
  }

  void before_solve(gantry::Solver& solver) override {
    solver.time_hooks();
    if (peak_.has_value()) return;
    const std::vector<gantry::NamedParameter> parameters = gantry::named_parameters(*solver.model());
    if (!parameters.empty()) peak_ = known_peak(device_name(device_), parameters.front().tensor.scalar_type());
  }

  void before_all_iter(gantry::Solver& solver) override {
    if (solver.mode() == gantry::Mode::train) last_ = Clock::now();
  }

  void after_iter(gantry::Solver& solver) override {
    if (solver.mode() != gantry::Mode::train) return;
    if (!started_) {
      started_ = true;
      count_flops(solver);
      last_ = Clock::now();
      return;
    }
    const Clock::time_point now = Clock::now();
    recent_.seconds += std::chrono::duration<double>(now - last_).count();
    recent_.samples += solver.batch().size();
    last_ = now;
    if (interval_ <= 0 || (solver.total_iter() + 1) % interval_ != 0) return;
    const Rate rate = rate_of(recent_, solver);
    solver.log_value("samples_per_s", rate.samples);
    if (rate.tflops > 0) solver.log_value("tflop_per_s", rate.tflops);
    if (rate.mfu > 0) solver.log_value("mfu", rate.mfu);
    logger_.info(solver.phase_text() + " iteration " + std::to_string(solver.total_iter() + 1) + ": " + text(rate));
    add_recent();
  }

  // It ran since the last iteration: that time is no part of training.
  void evaluated(gantry::Solver&, gantry::Mode, const gantry::Scalars&) override { last_ = Clock::now(); }

  void after_solve(gantry::Solver& solver) override {
    add_recent();
    if (all_.samples == 0 || solver.exit_reason() == gantry::ExitReason::failed) return;
    logger_.info("training in all: " + text(rate_of(all_, solver)));
    std::vector<std::pair<std::string, double>> hooks = solver.hook_seconds().entries();
    std::stable_sort(hooks.begin(), hooks.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::size_t width = 0;
    for (const auto& hook : hooks) width = std::max(width, hook.first.size());
    logger_.info("time in hooks, beside " + gantry::short_number(all_.seconds) + " s of training:");
    for (const auto& [name, seconds] : hooks) {
      char line[64];
      std::snprintf(line, sizeof line, "%11.4f s", seconds);
      logger_.info("  " + name + std::string(width - name.size(), ' ') + line);
    }
  }

 private:
  struct Work {
    double seconds = 0;
    int64_t samples = 0;
  };
  struct Rate {
    double samples = 0, tflops = 0, mfu = 0;  // 0: not known
  };

  void add_recent() {
    all_.seconds += recent_.seconds;
    all_.samples += recent_.samples;
    recent_ = {};
  }

  void count_flops(gantry::Solver& solver) {
    if (solver.model_flops() > 0) return;
    try {
      solver.register_flops();
    } catch (...) {
      logger_.warn("the operations of a sample cannot be counted: " + gantry::current_exception_message());
    }
  }

  Rate rate_of(const Work& work, const gantry::Solver& solver) const {
    Rate rate;
    if (work.seconds <= 0) return rate;
    rate.samples = static_cast<double>(work.samples) / work.seconds;
    rate.tflops = 3.0 * static_cast<double>(solver.model_flops()) * rate.samples / 1e12;
    if (peak_.has_value()) rate.mfu = rate.tflops / peak_->tflops;
    return rate;
  }

  std::string text(const Rate& rate) const {
    std::string text = gantry::short_number(rate.samples) + " samples/s";
    if (rate.tflops > 0) text += ", " + gantry::short_number(rate.tflops) + " TFLOP/s";
    if (rate.mfu > 0)
      text += ", MFU " + gantry::short_number(100 * rate.mfu) + " % of " + gantry::short_number(peak_->tflops) + " (" +
              peak_->of + ")";
    return text;
  }

  const int64_t interval_;
  const c10::Device device_;
  const gantry::Logger logger_;
  std::optional<Peak> peak_;
  bool started_ = false;
  Clock::time_point last_;
  Work recent_, all_;  // since the last line; before it
};

}  // namespace

GANTRY_PLUGIN("gantry-throughput", GANTRY_VERSION);
GANTRY_HOOK(ThroughputHook, "ThroughputHook", "Samples and operations per second, and the time spent in each hook.");
