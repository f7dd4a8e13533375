#include "staging.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "file_bytes.h"
#include "gantry/error.h"
#include "gantry/text.h"

namespace fs = std::filesystem;

namespace gantry {
namespace {

std::string random_digits() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    throw Error(cat("cannot get random numbers: ", system_message(errno)));
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string staged_beside(const std::string& path) {
  constexpr std::size_t kMostOfName = 200;  // a name may have 255 bytes
  std::string name = fs::path(path).filename().string();
  if (name.size() > kMostOfName) name.erase(0, name.size() - kMostOfName);
  return (fs::path(path).parent_path() / cat(".tmp-", random_digits(), "-", name)).string();
}

void make_folders(const std::string& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  // A link to a folder counts as one here, which create_directories sees differently.
  if (problem && !fs::is_directory(path)) throw Error(cat("cannot make the folder ", path, ": ", problem.message()));
}

void replace_file(const std::string& staged, const std::string& target) {
  {
    const FileDescriptor file(::open(staged.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0 || ::fsync(file.get()) != 0)
      throw Error(cat("cannot write ", target, ": ", system_message(errno)));
  }
  if (::rename(staged.c_str(), target.c_str()) != 0)
    throw Error(cat("cannot write ", target, ": ", system_message(errno)));
  sync_directory(folder_of(target));
}

}  // namespace gantry
