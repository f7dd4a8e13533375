#include "gantry/file_system.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "gantry/error.h"
#include "gantry/text.h"
#include "staging.h"

namespace fs = std::filesystem;

namespace gantry {

void FileSystem::declare_common(Parameters& parameters) {
  parameters.optional<std::string>("TEMP_DIR")
      .no_effect_on_result()
      .help("Folder for local copies of its files; default: the system's for temporary files.");
}

FileSystem::~FileSystem() = default;
std::string FileSystem::map_to_local(const std::string&) const { return ""; }
std::string FileSystem::get_url(const std::string& path) const { return path; }
std::string FileSystem::temp_dir() const {
  std::error_code problem;
  const fs::path folder = fs::temp_directory_path(problem);
  if (problem) throw Error(cat("there is no folder for temporary files (TMPDIR): ", problem.message()));
  return folder.string();
}

LocalCopy::LocalCopy(std::string path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}
LocalCopy::LocalCopy(LocalCopy&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}
LocalCopy& LocalCopy::operator=(LocalCopy&& other) noexcept {
  // What this one had goes with `other`.
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  return *this;
}
LocalCopy::~LocalCopy() {
  std::error_code ignored;
  if (temporary_) fs::remove_all(path_, ignored);
}

PutTo::PutTo(const FileSystem& file_system, std::string target, std::string local_path)
    : file_system_(&file_system), target_(std::move(target)), local_path_(std::move(local_path)) {}
PutTo::PutTo(PutTo&& other) noexcept
    : file_system_(other.file_system_), target_(std::move(other.target_)), local_path_(std::move(other.local_path_)) {
  other.local_path_.clear();
}
PutTo::~PutTo() {
  std::error_code ignored;
  if (!local_path_.empty()) fs::remove_all(local_path_, ignored);
}

void PutTo::commit() {
  if (local_path_.empty()) throw std::logic_error(cat(target_, " was committed already"));
  if (!fs::exists(local_path_))
    throw Error(cat("cannot write ", target_, ": nothing was written to ", local_path_, ", which stands for it"));
  const std::string local = file_system_->map_to_local(target_);
  if (local.empty()) {
    file_system_->put_object_from_local_file(local_path_, target_);
    fs::remove(local_path_);
  } else {
    replace_file(local_path_, local);
  }
  local_path_.clear();
}

namespace {

// "oss" of "oss://bucket/x"; empty for a path of this machine.
std::string scheme_of(const std::string& path) {
  const std::size_t end = path.find("://");
  if (end == std::string::npos || end == 0) return "";
  const std::string scheme = path.substr(0, end);
  const bool plain = std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.' || c == '_';
  });
  return plain && scheme != "file" ? scheme : "";
}

std::string temporary_path(const FileSystem& file_system, const std::string& path) {
  const std::string folder = file_system.temp_dir();
  make_folders(folder);
  return staged_beside((fs::path(folder) / fs::path(path).filename()).string());
}

}  // namespace

FileSystems::FileSystems() : local_(make_local_file_system()) {}
FileSystems::~FileSystems() = default;

void FileSystems::add(std::unique_ptr<FileSystem> file_system) {
  const std::string prefix = file_system->prefix();
  for (const auto& other : others_) {
    if (other->prefix() != prefix) continue;
    throw Error(prefix.empty() ? std::string("two file systems have every path (their prefix is empty)")
                               : cat("two file systems have the paths that begin with '", prefix, "'"));
  }
  others_.push_back(std::move(file_system));
}

const FileSystem& FileSystems::of(const std::string& path) const {
  const FileSystem* best = local_.get();
  std::size_t longest = 0;
  std::vector<std::string> known;
  for (const auto& other : others_) {
    const std::string prefix = other->prefix();
    if (!prefix.empty()) known.push_back(cat("'", prefix, "'"));
    if (path.starts_with(prefix) && prefix.size() >= longest) {
      best = other.get();
      longest = prefix.size();
    }
  }
  if (const std::string scheme = scheme_of(path); longest == 0 && !scheme.empty()) {
    throw Error(cat("no file system has the paths that begin with '", scheme, "://', such as ", path,
                    known.empty() ? std::string() : cat(" (those there are have ", join(known, ", "), ")"),
                    ": name one under SOLVER.FILE_SYSTEM"));
  }
  return *best;
}

LocalCopy FileSystems::get_from(const std::string& path) const {
  const FileSystem& file_system = of(path);
  if (std::string local = file_system.map_to_local(path); !local.empty()) {
    if (!file_system.exists(path)) {
      throw Error(
          cat("cannot read ", path, local == path ? "" : cat(" (", local, ")"), ": there is no such file or folder"));
    }
    return LocalCopy(std::move(local), false);
  }
  LocalCopy copy(temporary_path(file_system, path), true);
  if (file_system.is_dir(path))
    file_system.get_dir_to_local_dir(path, copy.path());
  else
    file_system.get_object_to_local_file(path, copy.path());
  return copy;
}

PutTo FileSystems::put_to(const std::string& path) const {
  const FileSystem& file_system = of(path);
  const std::string local = file_system.map_to_local(path);
  if (local.empty()) return PutTo(file_system, path, temporary_path(file_system, path));
  make_folders(folder_of(local));
  return PutTo(file_system, path, staged_beside(local));
}

}  // namespace gantry
