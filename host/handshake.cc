#include "host/handshake.h"

#include <algorithm>
#include <string_view>

#include "gantry/plugin_entry.h"
#include "gantry/text.h"

namespace gantry::host {

std::string host_field(const std::string& key) {
  std::string_view rest = build_note();
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '=')
      return std::string(line.substr(key.size() + 1));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return {};
}

std::vector<Difference> compare_build(const PluginNote& note) {
  std::vector<Difference> differences;
  for (const std::string key : kComparedFields) {
    const std::string* plugin = note.field(key);
    const std::string host = host_field(key);
    if (plugin != nullptr && *plugin == host) continue;
    differences.push_back({key, cat("plugin built for ", plugin == nullptr ? "an unknown one" : *plugin, ", this host ",
                                    key == "torch" ? "runs " : "has ", host)});
  }
  return differences;
}

std::optional<Difference> compare_kind(const ComponentNote& component) {
  const int host = kind_abi(component.kind.c_str());
  if (host == component.kind_abi) return std::nullopt;
  return Difference{component.kind + " ABI",
                    host == 0 ? cat("plugin built for ", component.kind_abi, ", this host does not know this kind")
                              : cat("plugin built for ", component.kind_abi, ", this host has ", host)};
}

std::string text(const std::vector<Difference>& differences) {
  std::vector<std::string> parts;
  for (const Difference& difference : differences) parts.push_back(cat(difference.field, ": ", difference.verdict));
  return join(parts, "; ");
}

}  // namespace gantry::host
