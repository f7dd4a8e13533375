#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/elf_note.h"
#include "host/handshake.h"

namespace gantry::host {

/// A file that is, or looks like, a plugin; known from its bytes alone.
struct PluginFile {
  std::string path;  ///< absolute
  uint64_t size = 0, device = 0, inode = 0;
  std::optional<PluginNote> note;  ///< absent: not a plugin, `skipped` says why
  std::string skipped;
  std::vector<Difference> differences;  ///< any: it cannot be loaded

  /// "acme-gradnorm 1.0.0"
  std::string title() const;
  const ComponentNote* component(const std::string& kind, const std::string& name) const;
};

PluginFile read_plugin_file(const std::string& path);

/// Whether one is a copy of the other: same build, same size, same note.
bool is_copy(const PluginFile& a, const PluginFile& b);

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

/// The kinds that this program's SDK knows, in the order of a configuration.
std::vector<std::string> known_kinds();

}  // namespace gantry::host
