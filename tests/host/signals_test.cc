#include "host/signals.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

namespace {

using gantry::host::Signals;

constexpr int kAll[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
const std::vector<std::string> kNames = {"SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"};

struct Ending {
  int exit_code = -1;
  int signal = 0;
};

/// Runs `f` in a process of its own, in which signals do what they do by default.
Ending in_child(const std::function<int()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : kAll) signal(number, SIG_DFL);
    _exit(f());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  Ending ending;
  if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  return ending;
}

bool pending_is(const Signals& signals, const std::string& name) {
  return signals.pending() != nullptr && signals.pending() == name;
}

}  // namespace

TEST_CASE("until signals are armed each of them ends the program") {
  for (const int number : kAll) {
    const Ending ending = in_child([&] {
      const Signals signals;
      raise(number);
      return 0;
    });
    CHECK(ending.signal == number);
  }
}

TEST_CASE("an armed signal ends nothing and the first one is told by its name") {
  const Ending ending = in_child([] {
    Signals signals;
    signals.arm(kNames);
    if (signals.pending() != nullptr) return 1;
    raise(SIGUSR1);
    if (!pending_is(signals, "SIGUSR1")) return 2;
    for (const int number : kAll) raise(number);
    return pending_is(signals, "SIGUSR1") ? 0 : 3;
  });
  CHECK(ending.signal == 0);
  CHECK(ending.exit_code == 0);
}

TEST_CASE("each of the five signals is noted under its name") {
  const std::pair<int, const char*> names[] = {
      {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}};
  for (const auto& [number, name] : names) {
    const Ending ending = in_child([number = number, name = name] {
      Signals signals;
      signals.arm(kNames);
      kill(getpid(), number);
      return pending_is(signals, name) ? 0 : 1;
    });
    CHECK(ending.exit_code == 0);
  }
}

TEST_CASE("a signal that is not armed ends the program also after the last save") {
  for (const bool at_the_end : {false, true}) {
    const Ending ending = in_child([&] {
      Signals signals;
      signals.arm({"SIGUSR1", "SIGUSR2"});
      raise(SIGUSR2);
      if (!pending_is(signals, "SIGUSR2")) return 1;
      if (at_the_end) signals.ignore();
      raise(SIGTERM);
      return 0;
    });
    CHECK(ending.signal == SIGTERM);
  }
}

TEST_CASE("a signal that was ignored when the program started stays ignored") {
  const Ending ending = in_child([] {
    signal(SIGHUP, SIG_IGN);
    Signals signals;
    signals.arm(kNames);
    raise(SIGHUP);
    if (signals.pending() != nullptr) return 1;
    raise(SIGTERM);
    return pending_is(signals, "SIGTERM") ? 0 : 2;
  });
  CHECK(ending.exit_code == 0);
}

TEST_CASE("after the last save signals are ignored even when nobody holds them any more") {
  const Ending ending = in_child([] {
    {
      Signals signals;
      signals.arm(kNames);
      signals.ignore();
      for (const int number : kAll) raise(number);
      if (signals.pending() != nullptr) return 1;
    }
    for (const int number : kAll) raise(number);
    return 0;
  });
  CHECK(ending.signal == 0);
  CHECK(ending.exit_code == 0);
}

TEST_CASE("a read that a signal interrupts goes on") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const Ending ending = in_child([&] {
    Signals signals;
    signals.arm(kNames);
    const pid_t parent = getpid();
    if (const pid_t helper = fork(); helper == 0) {
      usleep(100'000);
      kill(parent, SIGUSR1);
      usleep(100'000);
      _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
    }
    char byte = 0;
    if (read(ends[0], &byte, 1) != 1) return 1;
    return pending_is(signals, "SIGUSR1") ? 0 : 2;
  });
  CHECK(ending.exit_code == 0);
  close(ends[0]);
  close(ends[1]);
}
