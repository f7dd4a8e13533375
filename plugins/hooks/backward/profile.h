#pragma once

#include <gantry/log.h>

#include <cstdint>
#include <memory>
#include <string>

/// Chrome traces of some training iterations, made by LibTorch's profiler: of every cycle of `wait`, `warmup` and
/// `active` iterations the active ones are recorded, each under the name ProfilerStep#<total_iter>, and written to
/// `folder`/trace-<iterations done>.json. Main thread.
class Profile {
 public:
  struct Options {
    std::string folder;  ///< made with the first file
    int64_t wait = 1, warmup = 1, active = 3;
    int64_t repeat = 1;  ///< cycles; 0: as long as training runs
    bool cuda = false;
  };

  Profile(Options options, gantry::Logger logger);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void before_iteration(int64_t total_iter);
  void after_iteration(int64_t total_iter);
  /// Writes what a cycle that is not complete has recorded.
  void finish();

 private:
  struct Recording;
  void write();

  Options options_;
  gantry::Logger logger_;
  std::unique_ptr<Recording> recording_;  // from the first iteration that is recorded
  bool prepared_ = false;
  int64_t iteration_ = 0;   // of this process
  int64_t iterations_ = 0;  // of the run, done
};
