#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gantry/export.h"

namespace gantry {

enum class LogLevel { debug, info, warn, error };

/// Where log lines go. The host implements it, once, over its one logger; tests may implement their own.
/// Called from any thread.
class GANTRY_API LogSink {
 public:
  virtual ~LogSink();
  virtual bool enabled(LogLevel level) const = 0;
  /// `source` is the plugin that logs, empty for Gantry itself.
  virtual void write(LogLevel level, std::string_view source, std::string_view message) = 0;
  /// From now on lines also go to this file (appended); lines logged before are written to it first.
  virtual void open_file(const std::string& path) = 0;

  /// Whether somebody looks at a terminal, on which a status line can be shown.
  virtual bool interactive() const;
  /// Replaces the one line below the log on the terminal; empty removes it. Never goes to a file, and nowhere where
  /// nobody looks.
  virtual void status(std::string_view line);
};

/// What components log with: `context.logger()` or `solver.logger()`. Cheap to copy, safe from any thread.
/// Rank 0 alone prints below warn. Build a message only when its level is enabled, if that costs anything.
class GANTRY_API Logger final {
 public:
  Logger();  ///< discards everything
  Logger(std::shared_ptr<LogSink> sink, std::string source);

  bool enabled(LogLevel level) const;
  void log(LogLevel level, std::string_view message) const;
  void debug(std::string_view message) const { log(LogLevel::debug, message); }
  void info(std::string_view message) const { log(LogLevel::info, message); }
  void warn(std::string_view message) const { log(LogLevel::warn, message); }
  void error(std::string_view message) const { log(LogLevel::error, message); }

  bool interactive() const;
  void status(std::string_view line) const;

  const std::shared_ptr<LogSink>& sink() const { return sink_; }

 private:
  std::shared_ptr<LogSink> sink_;
  std::string source_;
};

}  // namespace gantry
