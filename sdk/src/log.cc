#include "gantry/log.h"

#include <utility>

namespace gantry {

LogSink::~LogSink() = default;

Logger::Logger() = default;
Logger::Logger(std::shared_ptr<LogSink> sink, std::string source)
    : sink_(std::move(sink)), source_(std::move(source)) {}

bool Logger::enabled(LogLevel level) const { return sink_ && sink_->enabled(level); }

void Logger::log(LogLevel level, std::string_view message) const {
  if (enabled(level)) sink_->write(level, source_, message);
}

}  // namespace gantry
