#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "child.h"
#include "toy_training.h"

namespace plugins_check {

enum class Verdict { ok, forgets, fails, not_tried };
const char* verdict_text(Verdict verdict);  ///< "ok", "not tried"

struct Result {
  std::string kind, name;
  Verdict verdict = Verdict::ok;
  std::string why;  ///< empty: ok
};

/// How components are tried: each step in a process of its own.
struct TrialSetup {
  std::vector<std::string> program;  ///< words that start the program so that it finds the file
  std::string folder;                ///< where everything happens
  std::chrono::seconds limit;        ///< for a process
  const HeldSignals& signals;
};

/// Loads a component, runs it for two iterations, then stops and goes on with it. Throws gantry::Error for what was
/// given on the command line and makes no sense.
Result try_component(const Candidate& candidate, const TrialSetup& setup);

}  // namespace plugins_check
