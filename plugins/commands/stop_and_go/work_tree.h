#pragma once

#include <string>

namespace stop_and_go {

/// The folder that holds the work dirs of all runs, their configurations and what they printed.
class WorkTree final {
 public:
  /// `asked`: a folder that is new or empty, and stays; empty: a temporary one, removed with this object unless keep()
  /// was called. Throws gantry::Error.
  explicit WorkTree(const std::string& asked);
  ~WorkTree();
  WorkTree(const WorkTree&) = delete;
  WorkTree& operator=(const WorkTree&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  void keep() { stays_ = true; }
  bool stays() const { return stays_; }

 private:
  std::string path_;
  bool stays_;
};

/// A copy of a run's WORK_DIR, to go on in. Checkpoints' files, which are never written to again, are shared.
void copy_work_dir(const std::string& from, const std::string& to);
void remove_tree(const std::string& path);

}  // namespace stop_and_go
