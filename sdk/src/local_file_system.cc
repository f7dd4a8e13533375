#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "file_bytes.h"
#include "gantry/error.h"
#include "gantry/file_system.h"
#include "gantry/text.h"
#include "publish.h"
#include "staging.h"

namespace fs = std::filesystem;

namespace gantry {
namespace {

constexpr std::string_view kScheme = "file://";

std::string without_scheme(const std::string& path) {
  std::string local = path.starts_with(kScheme) ? path.substr(kScheme.size()) : path;
  if (local.empty()) throw Error("a path of a file or folder is empty");
  return local;
}

// Without a slash at the end, which would be an empty name.
std::string trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

fs::file_type type_of(const std::string& path) {
  std::error_code problem;
  const fs::file_type type = fs::status(path, problem).type();
  if (type == fs::file_type::none) throw Error(cat("cannot look at ", path, ": ", problem.message()));
  return type;
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Calls use(staged) to make what shall stand there; takes it away again when something fails.
template <class Use>
void with_staged(const std::string& target, Use use) {
  make_folders(folder_of(target));
  const std::string staged = staged_beside(target);
  try {
    use(staged);
  } catch (...) {
    remove_quietly(staged);
    throw;
  }
}

void copy_bytes(InputFile& in, const std::string& to) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  OutputFile out(to, in.size());
  std::string piece(kPiece, '\0');
  while (const std::size_t count = in.read(piece.data(), piece.size())) out.write(piece.data(), count);
  out.finish();
}

void put_file(const std::string& from, const std::string& target) {
  InputFile in(from);
  with_staged(target, [&](const std::string& staged) {
    copy_bytes(in, staged);
    replace_file(staged, target);
  });
}

// Links are copied as links.
void copy_folder(const std::string& from, const std::string& to) {
  std::error_code problem;
  fs::create_directory(to, problem);
  if (problem) throw Error(cat("cannot make the folder ", to, ": ", problem.message()));
  for (const fs::directory_entry& entry : directory_entries(from)) {
    const std::string source = entry.path().string();
    const std::string target = (fs::path(to) / entry.path().filename()).string();
    const fs::file_type type = entry.symlink_status(problem).type();
    if (type == fs::file_type::symlink) {
      fs::copy_symlink(source, target, problem);
      if (problem) throw Error(cat("cannot copy the link ", source, " to ", target, ": ", problem.message()));
    } else if (type == fs::file_type::directory) {
      copy_folder(source, target);
    } else {
      InputFile in(source);
      copy_bytes(in, target);
    }
  }
  sync_directory(to);
}

bool lies_inside(const std::string& path, const std::string& folder) {
  const fs::path inner = fs::weakly_canonical(path), outer = fs::weakly_canonical(folder);
  const auto end = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return end.first == outer.end() && end.second != inner.end();
}

void put_folder(const std::string& from, const std::string& target) {
  const std::string what = cat("cannot put the folder ", from, " to ", target, ": ");
  if (type_of(from) != fs::file_type::directory) throw Error(cat(what, from, " is no folder"));
  const fs::file_type there = type_of(target);
  if (there != fs::file_type::directory && there != fs::file_type::not_found)
    throw Error(cat(what, "a file of that name is there"));
  if (lies_inside(target, from) || lies_inside(from, target)) throw Error(cat(what, "one lies inside the other"));
  with_staged(target, [&](const std::string& staged) {
    copy_folder(from, staged);
    const bool replaced = publish(staged, target, staged_beside(target));
    sync_directory(folder_of(target));
    if (replaced) remove_quietly(staged);  // what was there before
  });
}

struct Place {
  dev_t device;
  ino_t number;
  bool operator==(const Place&) const = default;
};

// Follows links, but for those that lead back to a folder that they lie in.
void walk(const std::string& folder, std::vector<Place>& way, std::vector<std::string>& files) {
  struct stat status;
  if (::stat(folder.c_str(), &status) != 0)
    throw Error(cat("cannot read the directory ", folder, ": ", system_message(errno)));
  const Place place{status.st_dev, status.st_ino};
  if (std::find(way.begin(), way.end(), place) != way.end()) return;
  way.push_back(place);
  for (const fs::directory_entry& entry : directory_entries(folder)) {
    const std::string path = entry.path().string();
    std::error_code problem;
    const fs::file_type type = entry.status(problem).type();
    if (type == fs::file_type::directory) walk(path, way, files);
    if (type == fs::file_type::regular) files.push_back(path);
  }
  way.pop_back();
}

class LocalFileSystem final : public FileSystem {
 public:
  std::string prefix() const override { return ""; }

  bool exists(const std::string& path) const override {
    return type_of(without_scheme(path)) != fs::file_type::not_found;
  }
  bool is_file(const std::string& path) const override {
    return type_of(without_scheme(path)) == fs::file_type::regular;
  }
  bool is_dir(const std::string& path) const override {
    return type_of(without_scheme(path)) == fs::file_type::directory;
  }
  int64_t size(const std::string& path) const override { return InputFile(without_scheme(path)).size(); }

  std::vector<std::string> walk_dir(const std::string& path) const override {
    const std::string folder = trimmed(without_scheme(path));
    std::vector<std::string> files;
    std::vector<Place> way;
    walk(folder, way, files);
    if (path.starts_with(kScheme)) {
      for (std::string& file : files) file.insert(0, kScheme);
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  std::string get_object(const std::string& path) const override {
    return read_file(without_scheme(path), std::numeric_limits<int64_t>::max());
  }
  void get_object_to_local_file(const std::string& path, const std::string& local_path) const override {
    put_file(without_scheme(path), without_scheme(local_path));
  }
  void get_dir_to_local_dir(const std::string& path, const std::string& local_path) const override {
    put_folder(trimmed(without_scheme(path)), trimmed(without_scheme(local_path)));
  }

  void put_object(std::string_view bytes, const std::string& path) const override {
    const std::string target = without_scheme(path);
    with_staged(target, [&](const std::string& staged) {
      write_file(staged, bytes);
      replace_file(staged, target);
    });
  }
  void put_object_from_local_file(const std::string& local_path, const std::string& path) const override {
    put_file(without_scheme(local_path), without_scheme(path));
  }
  void put_dir_from_local_dir(const std::string& local_path, const std::string& path) const override {
    put_folder(trimmed(without_scheme(local_path)), trimmed(without_scheme(path)));
  }
  void make_dir(const std::string& path) const override { make_folders(without_scheme(path)); }

  void make_link(const std::string& target, const std::string& link) const override {
    const fs::path to = fs::absolute(trimmed(without_scheme(target))).lexically_normal();
    const fs::path at = fs::absolute(trimmed(without_scheme(link))).lexically_normal();
    const std::string what = cat("cannot make the link ", at.string(), " to ", to.string(), ": ");
    std::error_code problem;
    const fs::file_type there = fs::symlink_status(at, problem).type();
    if (there != fs::file_type::not_found && there != fs::file_type::symlink)
      throw Error(cat(what, "a file or folder of that name is there"));
    if (type_of(to.string()) == fs::file_type::not_found) throw Error(cat(what, "there is no ", to.string()));
    with_staged(at.string(), [&](const std::string& staged) {
      // Beside each other they may be moved together.
      fs::create_symlink(to.parent_path() == at.parent_path() ? to.filename() : to, staged, problem);
      if (!problem) fs::rename(staged, at, problem);
      if (problem) throw Error(cat(what, problem.message()));
      sync_directory(folder_of(at.string()));
    });
  }

  std::string map_to_local(const std::string& path) const override { return without_scheme(path); }
};

}  // namespace

std::unique_ptr<FileSystem> make_local_file_system() { return std::make_unique<LocalFileSystem>(); }

}  // namespace gantry
