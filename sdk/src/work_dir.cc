#include "work_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "file_bytes.h"
#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {

namespace {

namespace fs = std::filesystem;

constexpr char kOwnFolder[] = ".gantry";
constexpr char kOld[] = "old-";

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return "an unknown host";
  return name;
}

std::string content_of(int fd) {
  char text[512];
  const ssize_t n = ::pread(fd, text, sizeof text, 0);
  std::string content(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!content.empty() && content.back() == '\n') content.pop_back();
  return content;
}

/// Where every scalar of a configuration, and the configuration itself, would lie as a path. But for LOG_FILE, which
/// names a result.
void collect_paths(const Config& value, std::set<fs::path>& paths) {
  const auto add = [&](const fs::path& path) {
    paths.insert(fs::absolute(path).lexically_normal());
    std::error_code problem;  // a text that is no path
    if (const fs::path real = fs::weakly_canonical(path, problem); !problem) paths.insert(real);
  };
  if (value.where().line > 0) add(value.where().file);
  if (value.type() == Config::Type::scalar && !value.text().empty()) {
    add(value.text());
    if (value.where().line > 0) add(fs::path(value.where().file).parent_path() / value.text());
  }
  for (const Config& item : value.items()) collect_paths(item, paths);
  for (const Config::Entry& entry : value.entries())
    if (entry.key != "LOG_FILE") collect_paths(entry.value, paths);
}

/// The first part of `path` below `folder`; empty when it is not below.
std::string entry_of(const fs::path& folder, const fs::path& path) {
  const fs::path relative = path.lexically_relative(folder);
  if (relative.empty() || *relative.begin() == ".." || *relative.begin() == ".") return {};
  return relative.begin()->string();
}

void move_into(const fs::path& from, const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (!problem) fs::rename(from, folder / from.filename(), problem);
  if (problem) throw Error(cat("cannot move ", from.string(), " to ", folder.string(), ": ", problem.message()));
}

}  // namespace

WorkDir::WorkDir(std::string path, const Config& solver, const Logger& logger)
    : path_(std::move(path)), logger_(logger) {
  std::error_code problem;
  fs::create_directories(path_, problem);
  if (problem) throw solver.error("WORK_DIR", cat("cannot create ", path_, ": ", problem.message()));
  const bool first_run = !fs::exists(fs::path(path_) / kOwnFolder);
  const std::vector<std::string> found = entries();
  fs::create_directories(fs::path(path_) / kOwnFolder, problem);
  if (problem) throw solver.error("WORK_DIR", cat("cannot write in ", path_, ": ", problem.message()));
  lock(solver);
  if (first_run) not_ours_ = found;
  note_what_is_not_ours();
}

WorkDir::~WorkDir() {
  if (lock_ < 0) return;
  // Left empty, so that the next run knows that this one ended in order. The lock itself goes with the descriptor,
  // however a process ends.
  if (::ftruncate(lock_, 0) != 0) logger_.debug("the lock's content could not be cleared");
  ::close(lock_);
}

void WorkDir::lock(const Config& solver) {
  const std::string file = path_ + "/" + kOwnFolder + "/lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw solver.error("WORK_DIR", cat("cannot open ", file, ": ", system_message(errno)));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const int problem = errno;
    const std::string owner = content_of(lock_);
    ::close(std::exchange(lock_, -1));
    if (problem == EWOULDBLOCK)
      throw solver.error("WORK_DIR", cat(path_, " is in use by ", owner.empty() ? "another run" : owner,
                                         ": wait for it to end, stop it, or give this run another WORK_DIR"));
    throw solver.error("WORK_DIR", cat("cannot lock ", file, ": ", system_message(problem)));
  }
  if (const std::string earlier = content_of(lock_); !earlier.empty())
    logger_.info(cat("the last run in ", path_, ", ", earlier, ", did not end in order"));
  const std::string owner = cat("process ", ::getpid(), " on ", host_name(), "\n");
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, owner.data(), owner.size(), 0) < 0)
    throw solver.error("WORK_DIR", cat("cannot write ", file, ": ", system_message(errno)));
}

void WorkDir::note_what_is_not_ours() {
  const std::string file = path_ + "/" + kOwnFolder + "/not-ours";
  if (std::ifstream in(file); in) {
    not_ours_.clear();
    for (std::string line; std::getline(in, line);) not_ours_.push_back(line);
    return;
  }
  if (not_ours_.empty()) return;
  std::string names;
  for (const std::string& name : not_ours_)
    if (name.find('\n') == std::string::npos) names += name + '\n';
  write_file(file, names);
}

std::vector<std::string> WorkDir::entries() const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : directory_entries(path_)) names.push_back(entry.path().filename().string());
  return names;
}

std::string WorkDir::new_old() const {
  int64_t last = 0;
  for (const std::string& name : entries()) {
    if (!name.starts_with(kOld)) continue;
    int64_t number = 0;
    const char* begin = name.data() + sizeof kOld - 1;
    const char* end = name.data() + name.size();
    if (std::from_chars(begin, end, number).ptr == end) last = std::max(last, number);
  }
  return cat(kOld, last + 1);
}

void WorkDir::retire_results(const Config& resolved) {
  std::set<fs::path> named;
  collect_paths(resolved, named);
  std::set<std::string> keep(not_ours_.begin(), not_ours_.end());
  // Under the name that it has here, and under its own where links lead to it.
  const fs::path real = fs::canonical(path_);
  for (const fs::path& path : named) {
    keep.insert(entry_of(path_, path));
    keep.insert(entry_of(real, path));
  }
  std::vector<std::string> moved;
  for (const std::string& name : entries())
    if (name != kOwnFolder && !name.starts_with(kOld) && !keep.contains(name)) moved.push_back(name);
  if (moved.empty()) return;
  const std::string old = new_old();
  for (const std::string& name : moved) move_into(fs::path(path_) / name, fs::path(path_) / old);
  logger_.info(cat("moved the results of an earlier run to ", path_, "/", old, " (", join(moved, ", "), ")"));
}

void WorkDir::retire_checkpoints(const std::vector<std::string>& names, const std::string& goes_on_from) {
  if (names.empty()) return;
  const std::string old = new_old();
  for (const std::string& name : names)
    move_into(fs::path(checkpoints()) / name, fs::path(path_) / old / "checkpoints");
  logger_.info(cat("moved what is newer than ", goes_on_from, " to ", path_, "/", old, "/checkpoints (",
                   join(names, ", "), ")"));
}

}  // namespace gantry
