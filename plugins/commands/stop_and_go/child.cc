#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <gantry/error.h>
#include <gantry/text.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

namespace stop_and_go {
namespace {

constexpr int kInterrupting[] = {SIGINT, SIGTERM, SIGHUP};
/// What a run may be stopped by: whatever this process was started with, for the child they do what they do.
constexpr int kStopping[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// Between fork and exec: nothing but system calls.
[[noreturn]] void become(char* const* words, int log, pid_t parent, sigset_t mask) {
  setpgid(0, 0);  // Ctrl-C is for the command alone
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (const int number : kStopping) {
    signal(number, SIG_DFL);
    sigdelset(&mask, number);
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int in = open("/dev/null", O_RDONLY);
  if (in < 0 || dup2(in, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) _exit(127);
  execv(words[0], words);
  const char message[] = "the program could not be started\n";
  if (write(2, message, sizeof message - 1) < 0) _exit(126);
  _exit(127);
}

Ending ending_of(int status, double seconds) {
  Ending ending;
  ending.seconds = seconds;
  if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  return ending;
}

}  // namespace

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? gantry::cat("signal ", number) : gantry::cat("SIG", name);
}

std::string Ending::text() const { return signal != 0 ? signal_text(signal) : gantry::cat("exit code ", exit_code); }

Children::Children() {
  sigemptyset(&interrupting_);
  for (const int number : kInterrupting) sigaddset(&interrupting_, number);
  waited_for_ = interrupting_;
  sigaddset(&waited_for_, SIGCHLD);
  // An ignored SIGCHLD would take the children's exit codes away.
  signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &waited_for_, &before_);
}

Children::~Children() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void Children::check() const {
  const timespec now{};
  const int number = sigtimedwait(&interrupting_, nullptr, &now);
  if (number > 0) throw Interrupted{number};
}

Ending Children::run(const std::vector<std::string>& command, const std::string& log) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> words = command;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (out < 0) throw gantry::Error(gantry::cat("cannot write ", log, ": ", std::strerror(errno)));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(pointers.data(), out, parent, before_);
  const int problem = errno;
  close(out);
  if (child < 0) throw gantry::Error(gantry::cat("cannot start another process: ", std::strerror(problem)));

  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const int number = sigwaitinfo(&waited_for_, nullptr);
    if (number <= 0 || number == SIGCHLD) continue;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    throw Interrupted{number};
  }
  return ending_of(status, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace stop_and_go
