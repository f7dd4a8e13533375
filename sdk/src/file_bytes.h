#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Files as bytes: whole reads and writes, and errors that name the file and the system's reason.

namespace gantry {

/// The system's words for a value of errno.
std::string system_message(int error);

/// Closes a file descriptor.
class FileDescriptor final {
 public:
  explicit FileDescriptor(int value) : value_(value) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return value_; }
  /// Hands the descriptor over to the caller.
  int release();

 private:
  int value_;
};

/// A regular file that is read from its begin. Throws gantry::Error, also for what is no regular file.
class InputFile final {
 public:
  explicit InputFile(std::string path);
  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  int descriptor() const { return file_.get(); }
  /// The number of bytes read: fewer than `size` at the file's end alone.
  std::size_t read(void* data, std::size_t size);

 private:
  std::string path_;
  FileDescriptor file_;
  int64_t size_ = 0;
};

/// A file that is created, or emptied, and written from its begin. `expected_size` serves the message about a full
/// disk. Throws gantry::Error.
class OutputFile final {
 public:
  OutputFile(std::string path, int64_t expected_size);
  void write(const void* data, std::size_t size);
  /// Flushes to the disk and closes. Without it nothing is certain.
  void finish();

 private:
  [[noreturn]] void fail(int error) const;
  std::string path_;
  int64_t expected_size_;
  int64_t written_ = 0;
  FileDescriptor file_;
};

/// The whole of a file of at most `limit` bytes.
std::string read_file(const std::string& path, int64_t limit);
void write_file(const std::string& path, std::string_view text);

/// What stands in a directory, by name; nothing where there is no such directory.
std::vector<std::filesystem::directory_entry> directory_entries(const std::string& path);
/// Flushes the names in a directory to the disk.
void sync_directory(const std::string& path);

}  // namespace gantry
