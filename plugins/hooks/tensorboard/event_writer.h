#pragma once

#include <gantry/append_file.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "proto.h"

/// A folder of event files: messages of type tensorflow.Event (tensorflow/core/util/event.proto) in records, a file for
/// each process that wrote some, in the order of their names. It counts them, so that a resumed run keeps those that
/// its checkpoint knows of. Everyone who writes into the folder shares it.
class EventWriter final {
 public:
  explicit EventWriter(std::string folder) : folder_(std::move(folder)) {}

  /// Before the first event. A training that was not resumed moves what an earlier one left here to old-1, old-2, ...,
  /// which TensorBoard shows as runs of their own. A run without training leaves its events beside the others, and no
  /// later run counts or removes those.
  void open(bool trains);

  /// Of the training that is being recorded.
  int64_t events() const { return keep_.value_or(events_); }
  /// All of them but the first `events` are to go, before the next one comes or settle() is called.
  void keep(int64_t events) { keep_ = events; }
  /// Removes what keep() left over, and what a kill cut short.
  void settle();

  /// Whether nobody has written what `what` names at this step, or a later one: several hooks may share a folder.
  bool claim(const std::string& what, int64_t step);
  void add(int64_t step, const Message& summary_value);
  void flush();

 private:
  void begin_file();
  void move_aside() const;

  const std::string folder_;
  std::unique_ptr<gantry::AppendFile> file_;
  std::string buffer_;
  int64_t events_ = 0;
  std::optional<int64_t> keep_;
  bool trains_ = true, resumed_ = false;
  std::map<std::string, int64_t> claimed_;
};

double seconds_since_1970();
