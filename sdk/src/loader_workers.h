#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "gantry/batch.h"

namespace gantry {

/// Threads that make numbered batches ahead of a consumer and hand them over in order. They live from the
/// constructor to the destructor and sleep between runs. All members are for one thread, the consumer's.
class LoaderWorkers final {
 public:
  /// `make` is called from the threads, several at a time. At most `ahead` batches are in hand or waiting.
  LoaderWorkers(int64_t threads, int64_t ahead, std::function<Batch(int64_t)> make);
  ~LoaderWorkers();
  LoaderWorkers(const LoaderWorkers&) = delete;
  LoaderWorkers& operator=(const LoaderWorkers&) = delete;

  /// Starts on the batches first, first + 1, ..., end - 1. Nothing may be running.
  void begin(int64_t first, int64_t end);
  /// Waits for the next of them, at most this long; returns whether `take` would not wait. There must be one.
  bool wait(std::chrono::milliseconds at_most);
  /// The next of them, or what `make` threw for it. There must be one.
  Batch take();
  /// Waits for the batches that threads have in hand and discards all. Afterwards no thread runs `make`.
  void stop();

 private:
  struct Slot {
    bool ready = false;
    Batch batch;
    std::exception_ptr failure;
  };

  void start_threads(int64_t count);
  void join_threads();
  void work();

  const std::function<Batch(int64_t)> make_;
  std::mutex mutex_;  // guards everything down to threads_
  std::condition_variable work_, done_;
  std::vector<Slot> slots_;  // batch b waits in slot b % size
  int64_t next_to_make_ = 0, next_to_take_ = 0, end_ = 0;
  int64_t in_hand_ = 0, started_ = 0;
  bool quit_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gantry
