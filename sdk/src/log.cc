#include "gantry/log.h"

#include <utility>

namespace gantry {

LogSink::~LogSink() = default;
bool LogSink::interactive() const { return false; }
void LogSink::status(std::string_view) {}

Logger::Logger() = default;
Logger::Logger(std::shared_ptr<LogSink> sink, std::string source)
    : sink_(std::move(sink)), source_(std::move(source)) {}

bool Logger::enabled(LogLevel level) const { return sink_ && sink_->enabled(level); }

void Logger::log(LogLevel level, std::string_view message) const {
  if (enabled(level)) sink_->write(level, source_, message);
}

bool Logger::interactive() const { return sink_ && sink_->interactive(); }

void Logger::status(std::string_view line) const {
  if (sink_) sink_->status(line);
}

}  // namespace gantry
