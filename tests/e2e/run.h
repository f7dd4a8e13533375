#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Runs the program as a user would and looks at what it says and leaves behind.

namespace e2e {

/// A fresh folder, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  /// Creates the folders on the way.
  void write(const std::string& name, std::string_view content) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Every file and folder below, relative, sorted; folders end with '/'.
  std::vector<std::string> list() const;

 private:
  std::string path_;
};

struct RunOptions {
  std::map<std::string, std::string> env = {};  ///< on top of this process's
  double timeout_s = 120;
};

struct RunResult {
  int exit_code = -1;  ///< -1: ended by a signal
  int signal = 0;
  bool timed_out = false;
  double seconds = 0;
  std::string out, err;

  /// The last line of stdout that is not empty: `gantry run --json` puts its report there.
  std::string last_line() const;
  /// All of it, to show when a check fails.
  std::string describe() const;
};

RunResult run_program(const std::vector<std::string>& command, const std::string& cwd, const RunOptions& options = {});
/// The program under test. It finds no plugins but those of the build and those that `options` name.
RunResult run_gantry(const std::vector<std::string>& arguments, const std::string& cwd, const RunOptions& options = {});

/// A value of a JSON text by its keys: strings unescaped, everything else as it stands.
std::optional<std::string> json_value(std::string_view json, const std::vector<std::string>& path);
/// nan when it is absent or no number.
double json_number(std::string_view json, const std::vector<std::string>& path);

/// 1-based line of the first occurrence; 0 when there is none.
int line_of(std::string_view text, std::string_view part);
/// The text with the first occurrence replaced; throws when there is none.
std::string replaced(std::string text, std::string_view part, std::string_view by);

}  // namespace e2e
