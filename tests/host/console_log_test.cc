#include "host/console_log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gantry/text.h"

namespace {

using gantry::LogLevel;
using gantry::host::ConsoleLog;

/// What a terminal shows that has received `bytes`: carriage return, new line, "erase to the end of the line", colours;
/// without the times "[12:00:00] " that log lines begin with.
std::string screen(const std::string& bytes) {
  std::vector<std::string> lines(1);
  std::size_t column = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string& line = lines.back();
    if (bytes[i] == '\r') {
      column = 0;
    } else if (bytes[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (bytes.compare(i, 2, "\x1b[") == 0) {
      i = bytes.find_first_not_of("0123456789;", i + 2);
      if (bytes[i] == 'K') line.resize(std::min(line.size(), column));
    } else {
      if (line.size() <= column) line.resize(column + 1, ' ');
      line[column++] = bytes[i];
    }
  }
  for (std::string& line : lines)
    if (line.size() > 11 && line[0] == '[' && line[9] == ']') line.erase(0, 11);
  return gantry::join(lines, "\n");
}

/// Everything that `f` writes to a terminal of its own, `width` columns wide, of the given TERM.
std::string on_terminal(const std::function<void()>& f, unsigned short width = 80, const char* term = "xterm") {
  struct winsize size {};
  size.ws_row = 24;
  size.ws_col = width;
  int terminal = -1;
  std::fflush(stdout);  // or the child prints what doctest has not yet
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    setenv("TERM", term, 1);
    f();
    std::fflush(stdout);
    _exit(0);
  }
  REQUIRE(child > 0);
  std::string bytes;
  char buffer[4096];
  for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) bytes.append(buffer, static_cast<std::size_t>(n));
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  return bytes;
}

}  // namespace

TEST_CASE("the status line stands below the log and is drawn again after each line") {
  const std::string bytes = on_terminal([] {
    ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
    log.status("10 % done");
    log.write(LogLevel::info, "", "one");
    log.write(LogLevel::info, "", "two");
    std::fflush(stdout);
    _exit(0);  // the log is never destroyed, so that the line can be seen
  });
  CHECK(screen(bytes) == "one\ntwo\n10 % done");
}

TEST_CASE("a shorter status line leaves nothing of the longer one before it") {
  const std::string bytes = on_terminal([] {
    ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
    log.status("a long line of status");
    log.status("short");
    _exit(0);
  });
  CHECK(screen(bytes) == "short");
}

TEST_CASE("a status line never stays behind") {
  const std::string bytes = on_terminal([] {
    ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
    log.write(LogLevel::info, "", "one");
    log.status("50 % done");
  });
  CHECK(screen(bytes) == "one\n");
  const std::string taken_away = on_terminal([] {
    ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
    log.status("50 % done");
    log.status("");
    log.write(LogLevel::info, "", "one");
    _exit(0);
  });
  CHECK(screen(taken_away) == "one\n");
}

TEST_CASE("an error on the other stream does not run into the status line") {
  const std::string bytes = on_terminal([] {
    ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
    log.status("a status that is longer than the error");
    log.write(LogLevel::error, "", "bad");
    std::fflush(stdout);
    _exit(0);
  });
  CHECK(screen(bytes) == "error: bad\na status that is longer than the error");
}

TEST_CASE("a status line is cut to the width of the terminal") {
  const std::string bytes = on_terminal(
      [] {
        ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
        log.status("0123456789012345678901234567890123456789");
        _exit(0);
      },
      20);
  CHECK(screen(bytes) == "0123456789012345678");
}

TEST_CASE("a terminal that cannot erase gets no status line") {
  for (const char* term : {"dumb", ""}) {
    const std::string bytes = on_terminal(
        [] {
          ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
          log.status("50 % done");
          log.write(LogLevel::info, "", log.interactive() ? "interactive" : "plain");
        },
        80, term);
    CHECK(screen(bytes) == "plain\n");
  }
}

TEST_CASE("a pipe gets no status line and neither does the log file") {
  char file[] = "/tmp/gantry-log-XXXXXX";
  const int made = mkstemp(file);
  REQUIRE(made >= 0);
  close(made);
  const std::string piped = on_terminal([&] {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
    log.status("50 % done");
    if (log.interactive()) std::fputs("interactive", stderr);
  });
  CHECK(piped.empty());
  on_terminal([&] {
    ConsoleLog log(ConsoleLog::Stream::out, LogLevel::info);
    log.open_file(file);
    log.status("50 % done");
    log.write(LogLevel::info, "", "one");
    if (!log.interactive()) _exit(1);
  });
  std::string content;
  if (std::FILE* in = std::fopen(file, "r")) {
    char buffer[4096];
    content.assign(buffer, std::fread(buffer, 1, sizeof buffer, in));
    std::fclose(in);
  }
  unlink(file);
  CHECK(content.ends_with("] one\n"));
  CHECK(content.find("done") == std::string::npos);
  CHECK(content.find('\x1b') == std::string::npos);
}
