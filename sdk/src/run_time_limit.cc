#include "run_time_limit.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace gantry {

namespace {

constexpr double kBytesPerSecond = 100e6;

std::chrono::steady_clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

std::chrono::steady_clock::time_point process_start() {
  const auto now = std::chrono::steady_clock::now();
  std::ifstream in("/proc/self/stat");
  std::string text;
  std::getline(in, text);
  // Field 22; the second, a name in brackets, may hold anything.
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  const double started = std::strtod(field.c_str(), nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  timespec uptime{};
  if (!fields || started <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &uptime) != 0) return now;
  const double age = static_cast<double>(uptime.tv_sec) + 1e-9 * static_cast<double>(uptime.tv_nsec) - started;
  return age > 0 ? now - to_duration(age) : now;
}

RunTimeLimit::RunTimeLimit(Clock::time_point start, double seconds) : start_(start), limit_(to_duration(seconds)) {}

void RunTimeLimit::begin(int64_t state_bytes, Clock::time_point now) {
  if (!set()) return;
  begun_ = true;
  last_look_ = now;
  longest_save_ = to_duration(static_cast<double>(state_bytes) / kBytesPerSecond);
}

bool RunTimeLimit::reached(Clock::time_point now) {
  longest_gap_ = std::max(longest_gap_, now - last_look_);
  last_look_ = now;
  return now - start_ + 2 * (longest_save_ + longest_gap_) >= limit_;
}

void RunTimeLimit::save_begins(Clock::time_point now) { save_began_ = now; }

void RunTimeLimit::save_ends(Clock::time_point now) {
  const Clock::duration took = now - save_began_;
  longest_save_ = save_measured_ ? std::max(longest_save_, took) : took;
  save_measured_ = true;
  last_look_ = now;  // a save is counted once, as a save
}

}  // namespace gantry
