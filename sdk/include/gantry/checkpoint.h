#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/export.h"
#include "gantry/state.h"

/// Checkpoints: directories from which a run goes on, WORK_DIR/checkpoints/<prefix>-<iteration>/ with
///
///   model.safetensors      the leaves under "model/", without that prefix: PyTorch's names
///   optimizer.safetensors  those under "optimizer/": <parameter>/<state>; "parameters" in its metadata: their order
///   state.safetensors      everything else, with whole paths; numbers as 0-dim int64 and float64, text as uint8
///   checkpoint.json        written last: what the others must be (size, XXH3), and a readable account
///
/// Equal runs write equal bytes into the first three; what differs (times, machine) stands in checkpoint.json. A
/// directory without a valid checkpoint.json does not exist for anyone. Main thread.
namespace gantry {

/// The account in checkpoint.json.
struct CheckpointInfo {
  std::string path;       ///< of the directory, absolute
  std::string name;       ///< its last part: "ldm_step-469"
  int64_t iteration = 0;  ///< training iterations done
  int64_t epoch = 0;
  int64_t step = 0;   ///< optimizer steps
  std::string phase;  ///< phase_name(): what comes next
  std::string why;    ///< who asked for it
  std::string saved;  ///< local time, "2026-01-31T14:00:05+0100"
  struct File {
    std::string name;
    int64_t size = 0;
    std::string xxh3;
  };
  std::vector<File> files;
  /// Named facts, in order: versions and the machine ("torch", "cpu", "threads", ...), on which bit-for-bit
  /// continuation depends; and every setting of the configuration that the result depends on, by its path.
  std::vector<std::pair<std::string, std::string>> machine, settings;
  std::vector<std::pair<std::string, double>> metrics;  ///< "eval/acc@1"; not finite ones are null in the file
};

/// Reads and checks checkpoint.json alone. `path` may be a link. Throws gantry::Error.
GANTRY_API CheckpointInfo read_checkpoint_info(const std::string& path);

/// Checks every file of a checkpoint: present, size, XXH3, its header. Throws gantry::Error that lists each file that
/// is missing or damaged, with both values.
GANTRY_API void verify_checkpoint(const CheckpointInfo& info);

/// The state of a verified checkpoint, its paths whole; or one of its files' alone ("model"). Tensors alias mapped
/// files.
GANTRY_API State read_checkpoint(const CheckpointInfo& info);
GANTRY_API State read_checkpoint(const CheckpointInfo& info, std::string_view part);

/// The folder of one run's checkpoints.
class GANTRY_API CheckpointStore final {
 public:
  /// `directory`: WORK_DIR/checkpoints. Nothing is touched before the first save.
  explicit CheckpointStore(std::string directory);
  ~CheckpointStore();
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;

  const std::string& directory() const { return directory_; }
  /// The first part of the names that are given from now on; no '/' in it.
  const std::string& prefix() const { return prefix_; }
  void set_prefix(std::string prefix);

  /// Writes a checkpoint named <prefix>-<info.iteration> and publishes it at once: built under another name, flushed
  /// to the disk, renamed; an existing one of that name is exchanged and then removed. `info` brings what the account
  /// says of the run; path, name, saved and files are filled in. Throws gantry::Error that names the file and the
  /// reason, having removed what it wrote: earlier checkpoints are as they were.
  CheckpointInfo save(const State& state, CheckpointInfo info);

  /// Those with a valid checkpoint.json, whatever their prefix, by ascending iteration, ties by name. `problems`, if
  /// given, receives a line for each other directory that looks like one: "ldm_step-200: its checkpoint.json ...".
  std::vector<CheckpointInfo> list(std::vector<std::string>* problems = nullptr) const;

  /// Makes the relative link `directory/link` name a checkpoint, replacing an earlier one at once.
  void link(std::string_view link, std::string_view name);
  /// The name that a link holds; empty when there is none.
  std::string linked(std::string_view link) const;
  /// Removes links that lead nowhere.
  void remove_broken_links();

  /// Removes a checkpoint; half of one is never seen under its name.
  void remove(std::string_view name);
  /// From now on remove() takes the name away at once and leaves the files, which may take long, to the caller: their
  /// folders are appended here. Null: no longer.
  void put_off_removals(std::vector<std::string>* folders) { put_off_ = folders; }
  /// Removes what interrupted saves and removals left behind. For the owner of WORK_DIR's lock.
  void remove_leftovers();

 private:
  std::string directory_, prefix_ = "ldm_step";
  std::vector<std::string>* put_off_ = nullptr;
};

}  // namespace gantry
