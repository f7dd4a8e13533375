#include "raised_signal.h"

#include <gantry/error.h>
#include <gantry/text.h>
#include <signal.h>

#include <vector>

namespace {

struct Signal {
  const char* name;
  int number;
};
constexpr Signal kSignals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"KILL", SIGKILL},
                               {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}};

int number_of(const std::string& name) {
  for (const Signal& signal : kSignals)
    if (name == signal.name || name == std::string("SIG") + signal.name) return signal.number;
  throw gantry::Error(gantry::cat("there is no signal ", name));
}

}  // namespace

void RaisedSignal::declare(gantry::Parameters& p, const std::string& otherwise) {
  std::vector<std::string> names;
  for (const char* prefix : {"", "SIG"})
    for (const Signal& signal : kSignals) names.push_back(gantry::cat(prefix, signal.name));
  p.add<std::string>("SIGNAL", otherwise)
      .choices(std::move(names))
      .no_effect_on_result()
      .help(
          "Which one. Those of ENV.SIGNALS pause training that has a CheckpointHook; otherwise, and with KILL, the "
          "process ends as by any signal.");
}

RaisedSignal::RaisedSignal(const gantry::Config& config) : number_(number_of(config.get<std::string>("SIGNAL"))) {}

// To this very thread, so that nothing runs in between.
void RaisedSignal::raise() const { ::raise(number_); }
