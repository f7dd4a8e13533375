#pragma once

#include <gantry/append_file.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// metrics.jsonl: lines in the order in which they came, and which of them a resumed run keeps. Lines of runs without
/// training, whose epoch is 0, are counted nowhere and stay for ever.
class LineFile final {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  /// Before the first line. A training that was not resumed moves an earlier one's file aside.
  void open(bool trains);

  /// Lines of the training that is being recorded.
  int64_t lines() const { return keep_.value_or(lines_); }
  /// All of them but the first `lines` are to go, before the next line comes or settle() is called.
  void keep(int64_t lines) { keep_ = lines; }
  /// Removes what keep() left over, and a last line that a kill cut short.
  void settle();

  /// Whether nobody has written the line that `what` has at this position: several hooks may share a file.
  bool claim(const std::string& what, int64_t position);
  void append(std::string_view line);

 private:
  void begin_file();
  void move_aside() const;

  const std::string path_;
  std::unique_ptr<gantry::AppendFile> file_;
  int64_t lines_ = 0;
  std::optional<int64_t> keep_;
  bool trains_ = true, resumed_ = false;
  std::map<std::string, int64_t> claimed_;
};
