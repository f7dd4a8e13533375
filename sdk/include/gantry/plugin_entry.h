#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gantry/export.h"

/// What the host reads of a plugin: its ELF notes and, once loaded, the structures behind its one exported
/// function. The macros of gantry/plugin.h make them; a plugin's author has no need of this header.

/// Owner of the notes, and their types.
#define GANTRY_NOTE_OWNER "GANTRY"
#define GANTRY_NOTE_PLUGIN 1     ///< lines of "key=value": name, version, and those of build_note()
#define GANTRY_NOTE_COMPONENT 2  ///< three lines: kind, ABI number of the kind, name
/// Name of the function `const PluginInfo* gantry_plugin_info()`.
#define GANTRY_PLUGIN_ENTRY "gantry_plugin_info"

namespace gantry {

class Config;
class Context;
class Parameters;

/// Raw memory across the boundary: fields are only ever appended, `struct_size` says how many there are.
struct ComponentEntry {
  std::size_t struct_size;
  const char* kind;
  int kind_abi;
  const char* name;
  const char* summary;
  void (*declare)(Parameters&);
  void* (*create)(const Config&, Context&);
};
struct PluginInfo {
  std::size_t struct_size;
  const char* note;  ///< must equal the text of the plugin's note
  const ComponentEntry* const* begin;
  const ComponentEntry* const* end;
};

/// What this SDK was built with, in the lines of a plugin's note from "sdk_abi=" on. The host compares
/// sdk_abi, torch, cxx11_abi, debug_stl, stdlib and sanitizer; the rest is for people.
GANTRY_API const char* build_note();
/// The ABI number of a kind ("hook"), 0 for an unknown one.
GANTRY_API int kind_abi(const char* kind);
/// Every kind, in the order of a configuration.
GANTRY_API std::vector<std::string> known_kinds();

}  // namespace gantry
