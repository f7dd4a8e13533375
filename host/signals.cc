#include "host/signals.h"

#include <signal.h>

#include <algorithm>
#include <atomic>

namespace gantry::host {
namespace {

struct Signal {
  int number;
  const char* name;
};
constexpr Signal kSignals[] = {
    {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}};

// A handler receives a number and nothing else, and a process has one handler per signal: what it notes can be no
// object's member. Without locks, because the interrupted thread may hold any.
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void note(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number, std::memory_order_relaxed);
}

void set_action(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // no read or write of anybody's fails because of it
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void Signals::arm(const std::vector<std::string>& signals) {
  for (const Signal& signal : kSignals) {
    if (std::find(signals.begin(), signals.end(), signal.name) == signals.end()) continue;
    struct sigaction before {};
    sigaction(signal.number, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    set_action(signal.number, note);
    armed_.push_back(signal.number);
  }
}

const char* Signals::pending() const {
  const int number = first_signal.load(std::memory_order_relaxed);
  for (const Signal& signal : kSignals)
    if (signal.number == number) return signal.name;
  return nullptr;
}

void Signals::ignore() {
  for (const int number : armed_) set_action(number, SIG_IGN);
}

}  // namespace gantry::host
