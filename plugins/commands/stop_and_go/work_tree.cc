#include "work_tree.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <cstdlib>
#include <filesystem>

namespace stop_and_go {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& action, const fs::path& path, const std::error_code& problem) {
  throw gantry::Error(gantry::cat("cannot ", action, " ", path.string(), ": ", problem.message()));
}

std::string temporary_folder() {
  std::string path = (fs::temp_directory_path() / "gantry-stop-and-go-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw gantry::Error("cannot make a temporary folder " + path);
  return fs::canonical(path).string();
}

std::string asked_folder(const std::string& asked) {
  std::error_code problem;
  const fs::path path = fs::absolute(asked).lexically_normal();
  if (fs::exists(path, problem) && !(fs::is_directory(path, problem) && fs::is_empty(path, problem)))
    throw gantry::Error(gantry::cat("--work-dir ", asked, " is there already, and is no empty folder: name a new one"));
  fs::create_directories(path, problem);
  if (problem) fail("make the folder", path, problem);
  return fs::canonical(path).string();
}

}  // namespace

WorkTree::WorkTree(const std::string& asked)
    : path_(asked.empty() ? temporary_folder() : asked_folder(asked)), stays_(!asked.empty()) {}

WorkTree::~WorkTree() {
  std::error_code ignored;
  if (!stays_) fs::remove_all(path_, ignored);
}

void copy_work_dir(const std::string& from, const std::string& to) {
  std::error_code problem;
  fs::create_directory(to, problem);
  if (problem) fail("make the folder", to, problem);
  for (auto entry = fs::recursive_directory_iterator(from); entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path relative = entry->path().lexically_relative(from), target = to / relative;
    const bool of_checkpoint =
        *relative.begin() == "checkpoints" && std::distance(relative.begin(), relative.end()) > 2;
    problem.clear();
    if (entry->is_symlink())
      fs::copy_symlink(entry->path(), target, problem);
    else if (entry->is_directory())
      fs::create_directory(target, problem);
    else if (entry->is_regular_file()) {
      if (of_checkpoint) fs::create_hard_link(entry->path(), target, problem);
      if (!of_checkpoint || problem) fs::copy_file(entry->path(), target, problem);
    }
    if (problem) fail("copy", entry->path(), problem);
  }
}

void remove_tree(const std::string& path) {
  std::error_code problem;
  fs::remove_all(path, problem);
  if (problem) fail("remove", path, problem);
}

}  // namespace stop_and_go
