#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/export.h"

/// What a plugin's file says about itself: read from its bytes, without loading it. The host and commands about plugins
/// call this; a plugin's author has no need of it.
namespace gantry {

struct ComponentNote {
  std::string kind;
  int kind_abi = 0;
  std::string name;
};

/// The notes that the macros of gantry/plugin.h leave.
struct PluginNote {
  std::string text;  ///< the library's note, as it stands in the file
  std::string name, version;
  std::vector<std::pair<std::string, std::string>> fields;  ///< every line of `text`, split at '='
  std::vector<ComponentNote> components;
  std::string build_id;  ///< hexadecimal, empty when the linker wrote none

  GANTRY_API const std::string* field(std::string_view key) const;
};

struct NoteResult {
  std::optional<PluginNote> note;
  std::string reason;  ///< why there is no note: "not an ELF file", "incomplete file (5 of 16384 bytes)"
};

/// Nothing in the file is believed: any bytes give a note or a reason. `file` is seekable.
GANTRY_API NoteResult read_plugin_note(std::istream& file);
/// The same for a path; also says what is wrong with one that cannot be opened.
GANTRY_API NoteResult read_plugin_note(const std::string& path);

/// One way in which a plugin does not fit this program.
struct Difference {
  std::string field;    ///< "torch", "hook ABI"
  std::string verdict;  ///< "plugin built for 2.10.0, this host runs 2.11.0"
};

/// Compares the fields of a note that must agree with build_note() for a plugin and a host to share C++ objects.
GANTRY_API std::vector<Difference> compare_build(const PluginNote& note);
GANTRY_API std::optional<Difference> compare_kind(const ComponentNote& component);
/// "torch: plugin built for 2.10.0, this host runs 2.11.0; ..."
GANTRY_API std::string differences_text(const std::vector<Difference>& differences);

/// A file that is, or looks like, a plugin.
struct PluginFile {
  std::string path;  ///< absolute
  uint64_t size = 0, device = 0, inode = 0;
  std::optional<PluginNote> note;  ///< absent: not a plugin, `skipped` says why
  std::string skipped;
  std::vector<Difference> differences;  ///< of the build; any: it cannot be loaded

  GANTRY_API std::string title() const;  ///< "acme-gradnorm 1.0.0"; empty without a note
  GANTRY_API const ComponentNote* component(const std::string& kind, const std::string& name) const;
  /// "hook LogHook, solver TrainValSolver"; "nothing".
  GANTRY_API std::string provides() const;
  /// Why it cannot be used, be it for one of its components: "skipped: not an ELF file", "incompatible: torch: ...".
  /// Empty when it can, as far as its bytes say.
  GANTRY_API std::string problem() const;
};

GANTRY_API PluginFile read_plugin_file(const std::string& path);

/// Whether one is a copy of the other: same build, same size, same note.
GANTRY_API bool is_copy(const PluginFile& a, const PluginFile& b);

/// What `gantry plugins inspect` and `gantry plugins list` show of a file; `status` is the last line: "ok", or why not.
GANTRY_API std::string plugin_inspection(const PluginFile& file, const std::string& status);
GANTRY_API std::string plugin_summary(const PluginFile& file, const std::string& status);
GANTRY_API std::string plugin_json(const PluginFile& file, const std::string& status);

}  // namespace gantry
