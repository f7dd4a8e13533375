#include "gantry/plugin_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iterator>
#include <sstream>

#include "gantry/json.h"
#include "gantry/plugin_entry.h"
#include "gantry/text.h"

namespace gantry {
namespace {

constexpr const char* kComparedFields[] = {"sdk_abi", "torch", "cxx11_abi", "debug_stl", "stdlib", "sanitizer"};

/// The value of a field of build_note(); empty when it has none.
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

/// The fields of a note beside this program's, in columns.
std::string fields_text(const PluginNote& note) {
  std::ostringstream out;
  const auto row = [&](const std::string& key, const std::string& plugin, const std::string& host,
                       const char* verdict) {
    out << "  " << std::left << std::setw(10) << key << "  " << std::setw(14) << plugin << "  " << std::setw(14) << host
        << verdict << '\n';
  };
  row("", "plugin", "host", "");
  for (const auto& [key, value] : note.fields) {
    if (key == "name" || key == "version") continue;
    const bool compared = std::count(std::begin(kComparedFields), std::end(kComparedFields), key) > 0;
    row(key, value, host_field(key), compared && value != host_field(key) ? "  differs" : "");
  }
  return out.str();
}

}  // namespace

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

std::string differences_text(const std::vector<Difference>& differences) {
  std::vector<std::string> parts;
  for (const Difference& difference : differences) parts.push_back(cat(difference.field, ": ", difference.verdict));
  return join(parts, "; ");
}

std::string PluginFile::title() const { return note ? cat(note->name, " ", note->version) : std::string(); }

const ComponentNote* PluginFile::component(const std::string& kind, const std::string& name) const {
  if (note)
    for (const ComponentNote& component : note->components)
      if (component.kind == kind && component.name == name) return &component;
  return nullptr;
}

std::string PluginFile::provides() const {
  std::vector<std::string> all;
  if (note)
    for (const ComponentNote& component : note->components) all.push_back(cat(component.kind, " ", component.name));
  return all.empty() ? "nothing" : join(all, ", ");
}

std::string PluginFile::problem() const {
  if (!note) return "skipped: " + skipped;
  std::vector<Difference> all = differences;
  for (const ComponentNote& component : note->components)
    if (const auto difference = compare_kind(component))
      all.push_back({cat(component.kind, " '", component.name, "'"), difference->verdict});
  return all.empty() ? std::string() : "incompatible: " + differences_text(all);
}

PluginFile read_plugin_file(const std::string& path) {
  PluginFile file;
  file.path = path;
  if (struct stat status{}; ::stat(path.c_str(), &status) == 0) {
    file.size = static_cast<uint64_t>(status.st_size);
    file.device = status.st_dev;
    file.inode = status.st_ino;
  }
  NoteResult result = read_plugin_note(path);
  file.note = std::move(result.note);
  file.skipped = std::move(result.reason);
  if (file.note) file.differences = compare_build(*file.note);
  return file;
}

bool is_copy(const PluginFile& a, const PluginFile& b) {
  return a.note && b.note && !a.note->build_id.empty() && a.note->build_id == b.note->build_id && a.size == b.size &&
         a.note->text == b.note->text;
}

std::string plugin_inspection(const PluginFile& file, const std::string& status) {
  std::string text = cat("file      ", file.path, " (", file.size, " bytes)\n");
  if (file.note) {
    const PluginNote& note = *file.note;
    text += cat("plugin    ", file.title(), "\nbuild-id  ", note.build_id.empty() ? "none" : note.build_id,
                "\nbuilt with\n", fields_text(note), "provides\n");
    for (const ComponentNote& component : note.components)
      text += cat("  ", component.kind, ' ', component.name, ", ABI ", component.kind_abi, " (host ",
                  kind_abi(component.kind.c_str()), ")\n");
  }
  return text + cat("status    ", status, '\n');
}

std::string plugin_summary(const PluginFile& file, const std::string& status) {
  const std::string title = file.note ? file.title() : std::filesystem::path(file.path).filename().string();
  std::string text = cat(title, "  ", status, "\n  file      ", file.path, '\n');
  if (file.note) text += cat("  provides  ", file.provides(), '\n');
  return text;
}

std::string plugin_json(const PluginFile& file, const std::string& status) {
  const PluginNote note = file.note.value_or(PluginNote());
  std::vector<std::string> components;
  for (const ComponentNote& component : note.components)
    components.push_back(json_object({{"kind", json_string(component.kind)},
                                      {"name", json_string(component.name)},
                                      {"abi", std::to_string(component.kind_abi)}}));
  return json_object({{"name", json_string(note.name)},
                      {"version", json_string(note.version)},
                      {"file", json_string(file.path)},
                      {"size", std::to_string(file.size)},
                      {"build_id", json_string(note.build_id)},
                      {"provides", json_array(components)},
                      {"status", json_string(status)}});
}

}  // namespace gantry
