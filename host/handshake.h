#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/elf_note.h"

namespace gantry::host {

/// One way in which a plugin does not fit this program.
struct Difference {
  std::string field;    ///< "torch", "hook ABI"
  std::string verdict;  ///< "plugin built for 2.10.0, this host runs 2.11.0"
};

/// The fields of a note that must agree with build_note(), for a plugin and a host to share C++ objects.
inline constexpr const char* kComparedFields[] = {"sdk_abi", "torch", "cxx11_abi", "debug_stl", "stdlib", "sanitizer"};
/// The value of a field of build_note(); empty when it has none.
std::string host_field(const std::string& key);

std::vector<Difference> compare_build(const PluginNote& note);
std::optional<Difference> compare_kind(const ComponentNote& component);

/// "torch: plugin built for 2.10.0, this host runs 2.11.0; ..."
std::string text(const std::vector<Difference>& differences);

}  // namespace gantry::host
