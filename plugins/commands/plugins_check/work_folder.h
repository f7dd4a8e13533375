#pragma once

#include <string>

namespace plugins_check {

/// Where the toy trainings run: a temporary folder that goes again, or one that was asked for and stays.
class WorkFolder final {
 public:
  /// `asked_for`: empty, or the path of a folder that is new or empty. Throws gantry::Error.
  explicit WorkFolder(const std::string& asked_for);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool temporary_;
};

void write_text(const std::string& path, const std::string& text);
std::string read_text(const std::string& path);  ///< empty when it cannot be read

}  // namespace plugins_check
