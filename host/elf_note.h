#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::host {

struct ComponentNote {
  std::string kind;
  int kind_abi = 0;
  std::string name;
};

/// What a plugin's file says about itself, read without loading it.
struct PluginNote {
  std::string text;  ///< the library's note, as it stands in the file
  std::string name, version;
  std::vector<std::pair<std::string, std::string>> fields;  ///< every line of `text`, split at '='
  std::vector<ComponentNote> components;
  std::string build_id;  ///< hexadecimal, empty when the linker wrote none

  const std::string* field(std::string_view key) const;
};

/// "hook LogHook, solver TrainValSolver"; "nothing".
std::string provides(const PluginNote& note);

struct NoteResult {
  std::optional<PluginNote> note;
  std::string reason;  ///< why there is no note: "not an ELF file", "incomplete file (5 of 16384 bytes)"
};

/// Reads the notes that the macros of gantry/plugin.h leave. Nothing in the file is believed: any bytes
/// give a note or a reason. `file` is seekable.
NoteResult read_plugin_note(std::istream& file);
/// The same for a path; also says what is wrong with one that cannot be opened.
NoteResult read_plugin_note(const std::string& path);

}  // namespace gantry::host
