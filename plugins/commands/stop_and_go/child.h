#pragma once

#include <signal.h>

#include <string>
#include <vector>

namespace stop_and_go {

/// How a process ended.
struct Ending {
  int exit_code = -1;  ///< -1: by a signal
  int signal = 0;
  double seconds = 0;

  std::string text() const;  ///< "exit code 75", "SIGKILL"
};

std::string signal_text(int number);  ///< "SIGTERM"

/// The user wants to end the command.
struct Interrupted {
  int signal;
};

/// Runs other processes, one at a time. For as long as it lives, SIGINT, SIGTERM and SIGHUP of this process wait until
/// it looks for them; none of its children outlives this process. Main thread.
class Children final {
 public:
  Children();
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Both outputs go to `log`, which is replaced. Throws Interrupted, the child having been killed; gantry::Error when
  /// there is no process to be had.
  Ending run(const std::vector<std::string>& command, const std::string& log);
  /// Throws Interrupted if there is reason to.
  void check() const;

 private:
  sigset_t waited_for_, interrupting_, before_;
};

}  // namespace stop_and_go
