#include <gantry/gantry.h>

#include "raised_signal.h"

namespace gantry {
namespace {

/// At the start of each step from STOP_STEP on, in every mode. The step that has begun still completes: a run that this
/// pauses in training has taken STOP_STEP + 1 steps.
class SignalAfterGivenStepCallback final : public Hook {
 public:
  static void declare(Parameters& p) {
    p.neutral();
    p.priority(10000);  // what is to be recorded of the step's start has been
    p.add<int64_t>("STOP_STEP")
        .at_least(0)
        .unit("steps")
        .no_effect_on_result()
        .help("The signal comes where a step starts and so many were taken, or more.");
    RaisedSignal::declare(p, "USR2");
  }
  SignalAfterGivenStepCallback(const Config& config, Context&)
      : stop_step_(config.get<int64_t>("STOP_STEP")), signal_(config) {}

  // In the midst of a step it changes nothing: it came at the start, too.
  void before_iter(Solver& solver) override {
    if (solver.step() >= stop_step_) signal_.raise();
  }

 private:
  const int64_t stop_step_;
  const RaisedSignal signal_;
};

/// Once in a process, at one place.
class SignalAtCallback final : public Hook {
 public:
  static void declare(Parameters& p) {
    p.neutral();
    p.priority(10000);  // after the other hooks of the point
    p.add<std::string>("MODE", "train")
        .choices({"train", "eval", "test"})
        .no_effect_on_result()
        .help("Which iterations are counted.");
    p.add<int64_t>("ITERATION")
        .at_least(0)
        .unit("iterations")
        .no_effect_on_result()
        .help("The signal comes after this one of the run, counted from 1; 0: before the first of the training.");
    RaisedSignal::declare(p, "TERM");
  }
  SignalAtCallback(const Config& config, Context&)
      : mode_(mode_named(config.get<std::string>("MODE"))),
        iteration_(config.get<int64_t>("ITERATION")),
        signal_(config) {
    if (mode_ != Mode::train && iteration_ == 0)
      throw config.error("ITERATION", cat("is 0, and MODE is ", mode_name(mode_),
                                          ": only training has a signal before its first iteration; give 1 or more"));
  }

  void before_epoch(Solver& solver) override {
    if (solver.mode() == Mode::train && iteration_ == 0 && solver.iterations() == 0) raise_once();
  }
  void after_iter(Solver& solver) override {
    if (solver.mode() == mode_ && solver.total_iter() + 1 == iteration_) raise_once();
  }

 private:
  static Mode mode_named(const std::string& name) {
    for (const Mode mode : {Mode::train, Mode::eval})
      if (name == mode_name(mode)) return mode;
    return Mode::test;
  }
  void raise_once() {
    if (raised_) return;
    raised_ = true;
    signal_.raise();
  }

  const Mode mode_;
  const int64_t iteration_;
  const RaisedSignal signal_;
  bool raised_ = false;
};

}  // namespace

GANTRY_HOOK(SignalAfterGivenStepCallback, "SignalAfterGivenStepCallback",
            "Test callback: sends its process a signal at every start of a step from a given one on.");
GANTRY_HOOK(SignalAtCallback, "SignalAtCallback",
            "Test callback: sends its process a signal once, after a given iteration of a mode.");

}  // namespace gantry
