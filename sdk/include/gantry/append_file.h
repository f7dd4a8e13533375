#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gantry/export.h"

namespace gantry {

/// A file of records that grows at its end, for as long as a run lasts. Failures are gantry::Error that names the path
/// and the reason. Main thread.
class GANTRY_API AppendFile final {
 public:
  /// Opens it, or creates it with the folders on the way.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::string& path() const { return path_; }
  /// All of `bytes`, or, where that fails, nothing. What has been appended outlives this process, however that ends; a
  /// kill in the middle may leave a part at the file's end.
  void append(std::string_view bytes);

 private:
  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
};

/// Gives the file at `path` this content at once, by way of the file ".replacing" in its folder.
GANTRY_API void replace_file(const std::string& path, std::string_view bytes);

}  // namespace gantry
