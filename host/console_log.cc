#include "host/console_log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string_view>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry::host {
namespace {

constexpr std::size_t kMaxKeptLines = 10'000;

// Both indexed by LogLevel.
constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                 spdlog::level::err};
constexpr const char* kPrefixes[] = {"debug: ", "", "warning: ", "error: "};

spdlog::level::level_enum spdlog_level(LogLevel level) { return kLevels[static_cast<int>(level)]; }

bool is_terminal(std::FILE* stream) {
  const char* name = std::getenv("TERM");
  return name != nullptr && *name != '\0' && std::string_view(name) != "dumb" && ::isatty(::fileno(stream)) == 1;
}

/// The characters that fit in one line, the last column left free: some terminals begin a new line after it.
std::size_t usable_width(std::FILE* stream) {
  struct winsize size {};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col - 1u : 79u;
}

template <class Sink>
spdlog::sink_ptr console_sink() {
  auto sink = std::make_shared<Sink>();
  sink->set_color(spdlog::level::info, "");
  sink->set_color(spdlog::level::debug, sink->dark);
  sink->set_color(spdlog::level::warn, sink->yellow);
  sink->set_color(spdlog::level::err, sink->red);
  sink->set_pattern("[%H:%M:%S] %^%v%$");
  return sink;
}

}  // namespace

struct ConsoleLog::Impl {
  struct Line {
    spdlog::log_clock::time_point time;
    LogLevel level;
    std::string text;
  };

  LogLevel threshold;
  // Errors go to stderr whatever the rest does; the file gets everything.
  std::shared_ptr<spdlog::sinks::dist_sink_mt> files = std::make_shared<spdlog::sinks::dist_sink_mt>();
  spdlog::logger lines{"gantry", files}, errors{"gantry", files};
  std::FILE* console = nullptr;
  bool interactive = false;
  // Guards what follows, the order of lines while the file is being opened, and what stands on the terminal.
  std::mutex mutex;
  std::string status;
  spdlog::sink_ptr file;
  std::deque<Line> kept;

  void erase_status() {
    if (status.empty()) return;
    std::fputs("\r\x1b[K", console);
    std::fflush(console);
  }
  void draw_status() {
    if (status.empty()) return;
    std::fwrite(status.data(), 1, std::min(status.size(), usable_width(console)), console);
    std::fflush(console);
  }
};

ConsoleLog::ConsoleLog(Stream stream, LogLevel threshold) : impl_(std::make_unique<Impl>()) {
  impl_->threshold = threshold;
  impl_->console = stream == Stream::err ? stderr : stdout;
  impl_->interactive = is_terminal(impl_->console);
  const auto err = console_sink<spdlog::sinks::ansicolor_stderr_sink_mt>();
  impl_->errors.sinks().push_back(err);
  impl_->lines.sinks().push_back(stream == Stream::err ? err : console_sink<spdlog::sinks::ansicolor_stdout_sink_mt>());
  for (spdlog::logger* logger : {&impl_->lines, &impl_->errors}) {
    logger->set_level(spdlog_level(threshold));
    // Lines are few. Flushing each keeps a pipe and `tail -f` up to date, and loses none in a crash.
    logger->flush_on(spdlog::level::trace);
  }
}

ConsoleLog::~ConsoleLog() { status({}); }

bool ConsoleLog::enabled(LogLevel level) const { return level >= impl_->threshold; }

void ConsoleLog::write(LogLevel level, std::string_view source, std::string_view message) {
  if (!enabled(level)) return;
  Impl::Line line{spdlog::log_clock::now(), level, kPrefixes[static_cast<int>(level)]};
  if (!source.empty()) line.text += cat("[", source, "] ");
  line.text += message;
  const std::lock_guard lock(impl_->mutex);
  // Whatever stream the line goes to: both mostly lead to one terminal.
  impl_->erase_status();
  (level == LogLevel::error ? impl_->errors : impl_->lines)
      .log(line.time, {}, spdlog_level(level), spdlog::string_view_t(line.text));
  impl_->draw_status();
  if (impl_->file != nullptr) return;
  impl_->kept.push_back(std::move(line));
  if (impl_->kept.size() > kMaxKeptLines) impl_->kept.pop_front();
}

bool ConsoleLog::interactive() const { return impl_->interactive; }

void ConsoleLog::status(std::string_view line) {
  if (!impl_->interactive) return;
  const std::lock_guard lock(impl_->mutex);
  impl_->erase_status();
  impl_->status = line.substr(0, line.find('\n'));
  impl_->draw_status();
}

void ConsoleLog::open_file(const std::string& path) {
  const std::lock_guard lock(impl_->mutex);
  try {
    spdlog::sink_ptr file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    file->set_pattern("[%Y-%m-%d %H:%M:%S] %v");
    for (const Impl::Line& line : impl_->kept)
      file->log(spdlog::details::log_msg(line.time, {}, "gantry", spdlog_level(line.level), line.text));
    file->flush();
    if (impl_->file != nullptr) impl_->files->remove_sink(impl_->file);
    impl_->files->add_sink(file);
    impl_->file = std::move(file);
    impl_->kept.clear();
  } catch (const spdlog::spdlog_ex& error) {
    throw Error(cat("cannot write the log file '", path, "': ", error.what()));
  }
}

}  // namespace gantry::host
