#include "child.h"

#include <fcntl.h>
#include <gantry/error.h>
#include <gantry/text.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

namespace plugins_check {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string signal_text(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? gantry::cat("signal ", number) : gantry::cat("SIG", name);
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment(const ChildSpec& spec) {
  std::vector<std::string> all;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (std::none_of(spec.variables.begin(), spec.variables.end(), [&](const auto& own) { return own.first == name; }))
      all.push_back(text);
  }
  for (const auto& [name, value] : spec.variables) all.push_back(gantry::cat(name, '=', value));
  return all;
}

[[noreturn]] void become(const ChildSpec& spec, const std::vector<char*>& arguments,
                         const std::vector<char*>& environment, pid_t parent, const sigset_t& mask) {
  // Only what is safe after a fork.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int in = ::open("/dev/null", O_RDONLY);
  const int out = ::open((spec.log + ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const int err = ::open((spec.log + ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (::getppid() == parent && ::chdir(spec.folder.c_str()) == 0 && ::dup2(in, 0) == 0 && ::dup2(out, 1) == 1 &&
      ::dup2(err, 2) == 2)
    ::execve(arguments[0], arguments.data(), environment.data());
  ::_exit(127);
}

/// Asks it to end, then makes it.
int end_child(pid_t child) {
  int status = 0;
  ::kill(-child, SIGTERM);
  for (int i = 0; i < 100; ++i) {
    if (::waitpid(child, &status, WNOHANG) == child) {
      ::kill(-child, SIGKILL);
      return status;
    }
    ::usleep(20'000);
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

HeldSignals::HeldSignals() {
  ::sigemptyset(&held_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&held_, number);
  ::sigprocmask(SIG_BLOCK, &held_, &outside_);
}

HeldSignals::~HeldSignals() { ::sigprocmask(SIG_SETMASK, &outside_, nullptr); }

int HeldSignals::wait(milliseconds time) const {
  const timespec limit{time.count() / 1000, time.count() % 1000 * 1'000'000};
  const int number = ::sigtimedwait(&held_, nullptr, &limit);
  return number > 0 ? number : 0;
}

std::string ChildEnd::text(std::chrono::seconds limit) const {
  if (hung) return gantry::cat("it did not end within ", limit.count(), " s");
  if (signal != 0) return gantry::cat("it ended by ", signal_text(signal));
  return gantry::cat("it ended with exit code ", exit_code);
}

ChildEnd run_child(const ChildSpec& spec, const HeldSignals& signals) {
  std::vector<std::string> words = spec.command, variables = environment(spec);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw gantry::Error("cannot start a process: " + std::generic_category().message(errno));
  if (child == 0) become(spec, argv, envp, parent, signals.outside());

  ChildEnd end;
  int status = 0;
  const Clock::time_point start = Clock::now();
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (const int number = signals.wait(milliseconds(10)); number != 0) {
      end_child(child);
      throw Interrupted{number};
    }
    if (Clock::now() - start < spec.limit) continue;
    end.hung = true;
    status = end_child(child);
    break;
  }
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  end.out = content_of(spec.log + ".out");
  end.err = content_of(spec.log + ".err");
  return end;
}

}  // namespace plugins_check
