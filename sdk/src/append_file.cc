#include "gantry/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "file_bytes.h"
#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  std::error_code problem;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, problem);
  if (problem) throw Error(cat("cannot create ", folder.string(), ": ", problem.message()));
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw Error(cat("cannot open ", path_, ": ", system_message(errno)));
  size_ = ::lseek(file_, 0, SEEK_END);
}

AppendFile::~AppendFile() { ::close(file_); }

void AppendFile::append(std::string_view bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t n = ::write(file_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int problem = n < 0 ? errno : ENOSPC;
      // Should this fail as well, a reader finds a part of a record, as after a kill.
      if (::ftruncate(file_, size_) != 0) size_ = ::lseek(file_, 0, SEEK_END);
      throw Error(cat("cannot write ", bytes.size(), " bytes to ", path_, ": ", system_message(problem)));
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  size_ += static_cast<int64_t>(bytes.size());
}

void replace_file(const std::string& path, std::string_view bytes) {
  const std::filesystem::path staged = std::filesystem::path(path).parent_path() / ".replacing";
  OutputFile file(staged.string(), static_cast<int64_t>(bytes.size()));
  file.write(bytes.data(), bytes.size());
  file.finish();
  std::error_code problem;
  std::filesystem::rename(staged, path, problem);
  if (problem) throw Error(cat("cannot replace ", path, ": ", problem.message()));
}

}  // namespace gantry
