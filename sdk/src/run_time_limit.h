#pragma once

#include <chrono>
#include <cstdint>

namespace gantry {

/// When this process began, as far as the system tells; now, where it does not. Loading LibTorch, which may take its
/// time, comes before anything of ours.
std::chrono::steady_clock::time_point process_start();

/// ENV.MAX_RUN_TIME: says when a run has to pause so that its last checkpoint is on the disk before the limit. Kept
/// back for that is twice what the longest save took, or would take at 100 MB/s before the first one, and twice the
/// longest time between two looks at the clock, which is where a pause can begin. Main thread.
class RunTimeLimit final {
 public:
  using Clock = std::chrono::steady_clock;

  RunTimeLimit() = default;  ///< none
  RunTimeLimit(Clock::time_point start, double seconds);

  bool set() const { return limit_.count() > 0; }
  double seconds() const { return std::chrono::duration<double>(limit_).count(); }

  /// From now on there is something to save.
  void begin(int64_t state_bytes, Clock::time_point now = Clock::now());
  /// Whether the run has to pause. Never before begin().
  bool reached() { return begun_ && reached(Clock::now()); }
  bool reached(Clock::time_point now);
  double kept_back_seconds() const { return std::chrono::duration<double>(2 * (longest_save_ + longest_gap_)).count(); }
  void save_begins(Clock::time_point now = Clock::now());
  void save_ends(Clock::time_point now = Clock::now());

 private:
  Clock::time_point start_{}, last_look_{}, save_began_{};
  Clock::duration limit_{}, longest_save_{}, longest_gap_{};
  bool begun_ = false, save_measured_ = false;
};

}  // namespace gantry
