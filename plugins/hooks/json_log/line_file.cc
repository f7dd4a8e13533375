#include "line_file.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  if (in) out << in.rdbuf();
  return out.str();
}

bool is_of_training(std::string_view line) { return line.find("\"epoch\": 0,") == std::string_view::npos; }

}  // namespace

void LineFile::settle() {
  if (!keep_.has_value()) return;
  file_.reset();
  const std::string content = content_of(path_);
  std::string kept;
  lines_ = 0;
  for (std::size_t begin = 0, end; (end = content.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(content).substr(begin, end + 1 - begin);
    const bool counts = is_of_training(line);
    if (counts && lines_ >= *keep_) continue;
    lines_ += counts;
    kept += line;
  }
  if (kept.size() != content.size()) gantry::replace_file(path_, kept);
  keep_.reset();
  resumed_ = true;
}

bool LineFile::claim(const std::string& what, int64_t position) {
  const auto [claimed, first] = claimed_.emplace(what, position);
  if (!first && claimed->second >= position) return false;
  claimed->second = position;
  return true;
}

void LineFile::move_aside() const {
  for (int n = 1;; ++n) {
    const std::string aside = gantry::cat(path_, ".old-", n);
    if (fs::exists(aside)) continue;
    std::error_code problem;
    fs::rename(path_, aside, problem);
    if (problem) throw gantry::Error(gantry::cat("cannot move ", path_, " to ", aside, ": ", problem.message()));
    return;
  }
}

void LineFile::open(bool trains) {
  trains_ = trains;
  settle();
  if (file_ == nullptr) begin_file();
}

void LineFile::begin_file() {
  if (!resumed_) {
    const std::string content = content_of(path_);
    if (trains_ && !content.empty()) move_aside();
    if (!trains_ && !content.empty() && content.back() != '\n')
      gantry::replace_file(path_, std::string_view(content).substr(0, content.rfind('\n') + 1));
  }
  file_ = std::make_unique<gantry::AppendFile>(path_);
}

void LineFile::append(std::string_view line) {
  open(trains_);
  file_->append(gantry::cat(line, "\n"));
  lines_ += trains_;
}
