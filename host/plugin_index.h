#pragma once

#include <string>
#include <vector>

#include "gantry/plugin_file.h"

namespace gantry::host {

/// All plugins in the search path: which there are and what they provide. Loads nothing.
/// In each directory *.so, not in folders below, in bytewise order; one file once, whatever links to it.
class PluginIndex final {
 public:
  explicit PluginIndex(std::vector<std::string> directories);

  const std::vector<std::string>& directories() const { return directories_; }
  const std::vector<PluginFile>& files() const { return files_; }

  /// Every file that provides a name, in search order.
  std::vector<const PluginFile*> providers(const std::string& kind, const std::string& name) const;
  /// The names of a kind, or of all when it is empty; sorted, each once.
  std::vector<std::string> names(const std::string& kind) const;
  std::vector<std::string> kinds_of(const std::string& name) const;

  /// "ok", "skipped: not an ELF file", "incompatible: torch: ...", "duplicate of /p/a.so", "conflict: ...".
  std::string status(const PluginFile& file) const;
  /// Where it looked, a line each, for messages.
  std::string directories_text() const;

 private:
  std::vector<const ComponentNote*> components() const;
  void scan(const std::string& directory);

  std::vector<std::string> directories_;
  std::vector<PluginFile> files_;
};

}  // namespace gantry::host
