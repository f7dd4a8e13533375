#pragma once

#include <memory>
#include <string>

#include "gantry/log.h"

namespace gantry::host {

/// The program's one log: short lines on the terminal, below them a status line, and once opened also a file. The only
/// part of the host that knows spdlog. Any thread.
class ConsoleLog final : public LogSink {
 public:
  enum class Stream { out, err };
  ConsoleLog(Stream stream, LogLevel threshold);
  ~ConsoleLog() override;

  bool enabled(LogLevel level) const override;
  void write(LogLevel level, std::string_view source, std::string_view message) override;
  /// Throws gantry::Error when the file cannot be written.
  void open_file(const std::string& path) override;

  /// Whether `stream` is a terminal that can erase a line.
  bool interactive() const override;
  void status(std::string_view line) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::host
