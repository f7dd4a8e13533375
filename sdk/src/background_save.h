#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "gantry/checkpoint.h"
#include "gantry/state.h"

namespace gantry {

/// Writes checkpoints on a thread of its own, one at a time, from a copy of the state. The copies' memory is kept:
/// fresh memory costs several times as much as the copying. The files of checkpoints that are removed go before the
/// next one is written, on that thread too. Main thread.
class BackgroundSave final {
 public:
  explicit BackgroundSave(CheckpointStore& store) : store_(store) { store_.put_off_removals(&removed_); }
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Copies, and returns while it is being written. Not before the one before has been collected.
  void start(const State& state, CheckpointInfo info);
  /// What start() began, once it is published, or its exception. Without `wait`: std::nullopt while it is being
  /// written.
  std::optional<CheckpointInfo> collect(bool wait);

 private:
  State copy(const State& state);

  CheckpointStore& store_;
  std::unordered_map<std::string, at::Tensor> kept_;
  std::vector<std::string> removed_;
  std::thread thread_;  // what follows is the thread's until `written_`
  State state_;
  std::vector<std::string> doomed_;
  CheckpointInfo info_;
  std::exception_ptr failure_;
  std::atomic<bool> written_{false};
};

}  // namespace gantry
