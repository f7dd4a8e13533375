#include "file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {

std::string system_message(int error) { return std::generic_category().message(error); }

FileDescriptor::~FileDescriptor() {
  if (value_ >= 0) ::close(value_);
}

int FileDescriptor::release() { return std::exchange(value_, -1); }

// O_NONBLOCK: opening a named pipe must not wait for its writer; regular files ignore it.
InputFile::InputFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status;
  if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0) {
    throw Error(cat("cannot read ", path_, ": ", system_message(errno)));
  }
  if (!S_ISREG(status.st_mode)) throw Error(cat("cannot read ", path_, ": it is not a regular file"));
  size_ = status.st_size;
}

std::size_t InputFile::read(void* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(file_.get(), static_cast<char*>(data) + done, size - done);
    if (count == 0) break;
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      throw Error(cat("cannot read ", path_, ": ", system_message(errno)));
    }
  }
  return done;
}

OutputFile::OutputFile(std::string path, int64_t expected_size)
    : path_(std::move(path)),
      expected_size_(expected_size),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (file_.get() < 0) fail(errno);
}

void OutputFile::fail(int error) const {
  std::string message = cat("cannot write ", path_, ": ", system_message(error));
  if (struct statvfs disk; error == ENOSPC && file_.get() >= 0 && ::fstatvfs(file_.get(), &disk) == 0) {
    const int64_t free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
    const int64_t missing = expected_size_ - written_;  // none: the system noticed after the last write
    message += cat(" (", missing > 0 ? cat("needs ", bytes_text(missing), " more, ") : "", bytes_text(free), " free)");
  }
  throw Error(message);
}

void OutputFile::write(const void* data, std::size_t size) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // the system takes no more than 2 GB at once
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(file_.get(), next, std::min(size, kMost));
    if (count >= 0) {
      next += count;
      size -= static_cast<std::size_t>(count);
      written_ += count;
    } else if (errno != EINTR) {
      fail(errno);
    }
  }
}

void OutputFile::finish() {
  while (::fsync(file_.get()) != 0) {
    if (errno != EINTR) fail(errno);
  }
  // Some network file systems report a full disk only here. After EINTR the descriptor is closed all the same.
  if (::close(file_.release()) != 0 && errno != EINTR) fail(errno);
}

std::string read_file(const std::string& path, int64_t limit) {
  InputFile file(path);
  if (file.size() > limit) {
    throw Error(
        cat("cannot read ", path, ": it has ", bytes_text(file.size()), ", the most allowed is ", bytes_text(limit)));
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  text.resize(file.read(text.data(), text.size()));
  return text;
}

void write_file(const std::string& path, std::string_view text) {
  OutputFile file(path, static_cast<int64_t>(text.size()));
  file.write(text.data(), text.size());
  file.finish();
}

std::vector<std::filesystem::directory_entry> directory_entries(const std::string& path) {
  std::error_code problem;
  std::vector<std::filesystem::directory_entry> entries;
  std::filesystem::directory_iterator place(path, problem);
  for (; !problem && place != std::filesystem::directory_iterator(); place.increment(problem))
    entries.push_back(*place);
  if (problem && problem != std::errc::no_such_file_or_directory)
    throw Error(cat("cannot read the directory ", path, ": ", problem.message()));
  std::sort(entries.begin(), entries.end());
  return entries;
}

void sync_directory(const std::string& path) {
  const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: a file system that has no such thing.
  if (directory.get() < 0 || (::fsync(directory.get()) != 0 && errno != EINVAL)) {
    throw Error(cat("cannot flush the directory ", path, " to the disk: ", system_message(errno)));
  }
}

}  // namespace gantry
