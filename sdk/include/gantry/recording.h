#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/export.h"
#include "gantry/fields.h"

/// What test callbacks (test_callback.h) wrote down, and how it is read again. WORK_DIR/recordings/<label>.jsonl is
/// text, one JSON object a line: first what the recorder is,
///   {"recorder": "TrainLossCallback", "tolerance": 0}
/// then an entry for each thing that happened,
///   {"event": 3, "mode": "train", "epoch": 1, "iteration": 3, "batch": 3, "values": [["loss", "float32", [], "3f...",
///    "2.31"]]}
/// where a value is its field, dtype, shape, digest (XXH3, 64 bits, of its bytes), the numbers themselves if there are
/// few ("" otherwise), and, if whole values are kept, the byte of <label>.values at which they begin.
namespace gantry {

class Solver;
class State;

struct Recording {
  struct Value {
    std::string field;           ///< "loss", "fc.weight/exp_avg"
    std::string dtype;           ///< PyTorch's name; "text" for strings
    std::vector<int64_t> shape;  ///< of text: its bytes
    std::string digest;
    std::string text;        ///< "2.31", "[1, 2]": exactly, where there are few numbers; else empty
    int64_t stored_at = -1;  ///< in the file of whole values; -1: not kept
  };
  struct Entry {
    int64_t event = 0;      ///< its number over the whole run, whatever the interruptions; -1: outside of it
    std::string mode;       ///< "train", "eval", "test"
    int64_t epoch = 0;      ///< 1-based
    int64_t iteration = 0;  ///< training iterations done
    int64_t batch = 0;      ///< 0-based, in the running phase
    std::vector<Value> values;
  };
  std::string path, recorder;
  double tolerance = 0;  ///< see BaseInterruptedVsContinuousCallback
  std::vector<Entry> entries;

  /// A value that was kept whole, on the CPU. Throws gantry::Error.
  GANTRY_API at::Tensor whole(const Value& value) const;
};

/// Throws gantry::Error that names the file and the line. A last line that a kill cut short does not count.
GANTRY_API Recording read_recording(const std::string& path);

/// Writes a recording. Values are digested, and copied where they are kept, before `add` returns: nothing aliases what
/// training goes on to change. Failures are gantry::Error that names the file. Main thread.
class GANTRY_API RecordingWriter final {
 public:
  /// `base`: the path without ".jsonl". Nothing is touched before the first entry.
  RecordingWriter(std::string base, std::string recorder, double tolerance, bool keep_whole);
  ~RecordingWriter();
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;

  /// Everything is on its way to the disk, and outlives this process, after flush(). `entry.values` is ignored.
  void add(const Recording::Entry& entry, const Fields& values);
  void add(const Recording::Entry& entry, const State& values);
  void flush();
  /// Drops the entries from this event's on, those of earlier processes too.
  void cut(int64_t first_dropped);
  /// Drops everything.
  void clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry
