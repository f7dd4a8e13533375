#pragma once

#include <signal.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace plugins_check {

/// While it lives, SIGINT, SIGTERM and SIGHUP are held back, and wait() notices them: so that a child and a temporary
/// folder are cleared away first. Main thread.
class HeldSignals final {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// Sleeps. Returns the signal that came, or 0.
  int wait(std::chrono::milliseconds time) const;
  const sigset_t& outside() const { return outside_; }  ///< the mask of before

 private:
  sigset_t held_, outside_;
};

/// What leaves when a signal of HeldSignals came.
struct Interrupted {
  int signal;
};

/// How a child ended, and what it said.
struct ChildEnd {
  int exit_code = -1;  ///< -1: it did not exit
  int signal = 0;
  bool hung = false;  ///< it was ended because its time was over
  std::string out, err;

  /// "it ended by SIGSEGV", "it did not end within 60 s", "it ended with exit code 3"
  std::string text(std::chrono::seconds limit) const;
};

struct ChildSpec {
  std::vector<std::string> command;
  std::string folder;  ///< to run in
  std::string log;     ///< the path, without .out and .err, of the files that take what it prints
  std::vector<std::pair<std::string, std::string>> variables;  ///< of its environment, beside those of this program
  std::chrono::seconds limit;
};

/// Runs a process and waits for its end. Nothing of it stays, nor of this program's end: it dies with it.
/// Throws Interrupted, and gantry::Error when it cannot be started.
ChildEnd run_child(const ChildSpec& spec, const HeldSignals& signals);

}  // namespace plugins_check
