#include "host/plugin_index.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "gantry/text.h"

namespace gantry::host {
namespace fs = std::filesystem;

namespace {

bool is_directory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

PluginIndex::PluginIndex(std::vector<std::string> directories) : directories_(std::move(directories)) {
  for (const std::string& directory : directories_)
    if (is_directory(directory)) scan(directory);
}

void PluginIndex::scan(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".so") && !name.starts_with('.')) names.push_back(std::move(name));
  }
  if (error) {
    PluginFile unreadable;
    unreadable.path = directory;
    unreadable.skipped = cat("cannot read the directory: ", error.message());
    files_.push_back(std::move(unreadable));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    PluginFile file = read_plugin_file((fs::path(directory) / name).string());
    const bool known = file.inode != 0 && std::any_of(files_.begin(), files_.end(), [&](const PluginFile& other) {
                         return other.inode == file.inode && other.device == file.device;
                       });
    if (!known) files_.push_back(std::move(file));
  }
}

std::vector<const PluginFile*> PluginIndex::providers(const std::string& kind, const std::string& name) const {
  std::vector<const PluginFile*> found;
  for (const PluginFile& file : files_)
    if (file.component(kind, name) != nullptr) found.push_back(&file);
  return found;
}

std::vector<std::string> PluginIndex::names(const std::string& kind) const {
  std::set<std::string> found;
  for (const ComponentNote* component : components())
    if (kind.empty() || component->kind == kind) found.insert(component->name);
  return {found.begin(), found.end()};
}

std::vector<std::string> PluginIndex::kinds_of(const std::string& name) const {
  std::set<std::string> found;
  for (const ComponentNote* component : components())
    if (component->name == name) found.insert(component->kind);
  return {found.begin(), found.end()};
}

std::vector<const ComponentNote*> PluginIndex::components() const {
  std::vector<const ComponentNote*> all;
  for (const PluginFile& file : files_)
    if (file.note)
      for (const ComponentNote& component : file.note->components) all.push_back(&component);
  return all;
}

std::string PluginIndex::status(const PluginFile& file) const {
  if (std::string problem = file.problem(); !problem.empty()) return problem;
  for (const ComponentNote& component : file.note->components) {
    for (const PluginFile* other : providers(component.kind, component.name)) {
      if (other == &file) continue;
      if (!is_copy(*other, file))
        return cat("conflict: ", component.kind, " '", component.name, "' is also in ", other->path);
      if (other < &file) return cat("duplicate of ", other->path, ", which comes first");
    }
  }
  return "ok";
}

std::string PluginIndex::directories_text() const {
  std::string out;
  for (const std::string& directory : directories_)
    out += cat("  ", directory, is_directory(directory) ? "\n" : " (does not exist)\n");
  return out;
}

}  // namespace gantry::host
