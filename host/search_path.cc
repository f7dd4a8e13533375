#include "host/search_path.h"

#include <cstdlib>
#include <filesystem>

#include "gantry/text.h"

namespace gantry::host {
namespace {

namespace fs = std::filesystem;

std::string absolute_text(const fs::path& path) {
  std::error_code error;
  std::string text = fs::absolute(path, error).lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

void add_required(const std::string& name, const fs::path& base, const SourceLocation& where, const char* what,
                  std::vector<std::string>& directories) {
  std::error_code error;
  if (name.empty() || !fs::is_directory(base / name, error))
    throw ConfigError(where, cat(what, ": no directory '", name, "'"));
  directories.push_back(absolute_text(base / name));
}

void add_configured(const Config& config, std::vector<std::string>& directories) {
  const Config* value = config.type() == Config::Type::map ? config.find("PLUGIN_DIRS") : nullptr;
  if (value == nullptr || value->is_null()) return;
  const bool one = value->type() == Config::Type::scalar;
  if (!one && value->type() != Config::Type::list)
    throw ConfigError(value->where(), cat("PLUGIN_DIRS: expected directories, found ", value->describe()));
  for (const Config& item : one ? std::vector<Config>{*value} : value->items()) {
    if (item.type() != Config::Type::scalar)
      throw ConfigError(item.where(), cat("PLUGIN_DIRS: expected a directory, found ", item.describe()));
    const SourceLocation& where = item.where();
    const fs::path base = where.line > 0 ? fs::path(where.file).parent_path() : fs::path();
    add_required(item.text(), base, where, "PLUGIN_DIRS", directories);
  }
}

}  // namespace

std::string program_prefix() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path().string();
}

std::vector<std::string> search_path(const std::vector<std::string>& arguments, const Config& config) {
  std::vector<std::string> directories;
  for (const std::string& argument : arguments)
    add_required(argument, {}, {"command line", 0, 0}, "--plugin-dir", directories);
  add_configured(config, directories);
  if (const char* variable = std::getenv("GANTRY_PLUGIN_PATH")) {
    std::string_view rest = variable;
    while (!rest.empty()) {
      const std::string_view item = rest.substr(0, rest.find(':'));
      // An empty item would mean the current directory, which nobody asked for.
      if (!item.empty()) directories.push_back(absolute_text(item));
      rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    }
  }
  const char* data_home = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  if (data_home != nullptr && *data_home == '/') {
    directories.push_back(absolute_text(fs::path(data_home) / "gantry/plugins"));
  } else if (home != nullptr && *home == '/') {
    directories.push_back(absolute_text(fs::path(home) / ".local/share/gantry/plugins"));
  }
  if (const std::string prefix = program_prefix(); !prefix.empty())
    directories.push_back(absolute_text(fs::path(prefix) / "lib/gantry/plugins"));
  return directories;
}

}  // namespace gantry::host
