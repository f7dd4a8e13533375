#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "page.h"

namespace probe_data {

/// The folders of one mode, WORK_DIR/<mode>_probe/<prefix>-<iteration>/, and the page that lists them. A folder is
/// there whole or not at all; those of several prefixes stand in one list. Failures are gantry::Error that names the
/// path.
class StepFolders {
 public:
  StepFolders(const std::string& work_dir, std::string mode, std::string prefix);

  /// What a process that was killed left half written, and the folders of this prefix from `first` on, are removed.
  void remove_from(int64_t first);
  /// `write` fills the folder that it is given; then that is the folder of the iteration, in place of an earlier one.
  /// With `link`, <prefix>-last leads to it.
  void add(int64_t iteration, bool link,
           const std::function<void(const std::string& folder, const Neighbours& neighbours)>& write);

 private:
  struct Folder {
    std::string name;
    int64_t iteration = 0;
  };
  std::vector<Folder> folders() const;  // of every prefix, ascending
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  void link_last(const std::string& name);
  void refresh_neighbours(const std::vector<Folder>& all, std::size_t index);
  void refresh_list(const std::vector<Folder>& all);

  std::string root_, mode_, prefix_;
};

}  // namespace probe_data
