#include "host/plugin_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "gantry/kinds.h"
#include "gantry/text.h"

namespace gantry::host {
namespace fs = std::filesystem;

namespace {

bool is_directory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

std::string PluginFile::title() const { return note ? cat(note->name, " ", note->version) : std::string(); }

const ComponentNote* PluginFile::component(const std::string& kind, const std::string& name) const {
  if (note)
    for (const ComponentNote& component : note->components)
      if (component.kind == kind && component.name == name) return &component;
  return nullptr;
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
  if (!file.note) return "skipped: " + file.skipped;
  std::vector<Difference> differences = file.differences;
  for (const ComponentNote& component : file.note->components)
    if (auto difference = compare_kind(component))
      differences.push_back({cat(component.kind, " '", component.name, "'"), difference->verdict});
  if (!differences.empty()) return "incompatible: " + text(differences);
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

std::vector<std::string> known_kinds() {
  return {KindOf<BaseSolver>::name, KindOf<Hook>::name,        KindOf<Model>::name,   KindOf<Module>::name,
          KindOf<Loss>::name,       KindOf<Dataset>::name,     KindOf<Sampler>::name, KindOf<Transform>::name,
          KindOf<Optimizer>::name,  KindOf<LrScheduler>::name, KindOf<Metric>::name};
}

}  // namespace gantry::host
