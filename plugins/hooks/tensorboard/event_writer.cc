#include "event_writer.h"

#include <gantry/error.h>
#include <gantry/text.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "record.h"

namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "events.out.tfevents.", kOfTraining[] = ".gantry", kAlone[] = ".gantry-alone";
constexpr std::size_t kMostBuffered = 1 << 20;

/// Oldest first: a file's name has the time at which it was begun.
std::vector<fs::path> event_files(const std::string& folder) {
  std::error_code problem;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, problem); !problem && at != fs::directory_iterator(); at.increment(problem)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kOfTraining)) files.push_back(at->path());
  }
  if (problem && problem != std::errc::no_such_file_or_directory)
    throw gantry::Error(gantry::cat("cannot read the folder ", folder, ": ", problem.message()));
  std::sort(files.begin(), files.end());
  return files;
}

int64_t begun_at(const fs::path& file) {
  return std::strtoll(file.filename().string().c_str() + sizeof kPrefix - 1, nullptr, 10);
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  if (!in) throw gantry::Error(gantry::cat("cannot read ", file.string()));
  return out.str();
}

void check(const std::error_code& problem, const char* what, const fs::path& path) {
  if (problem) throw gantry::Error(gantry::cat("cannot ", what, " ", path.string(), ": ", problem.message()));
}

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "host";
  return name;
}

}  // namespace

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void EventWriter::open(bool trains) {
  trains_ = trains;
  settle();
  if (file_ == nullptr) begin_file();
}

void EventWriter::begin_file() {
  std::vector<fs::path> files = event_files(folder_);
  if (trains_ && !resumed_ && !files.empty()) {
    move_aside();
    files.clear();
  }
  // Readers go through the files in the order of their names.
  const auto now = static_cast<int64_t>(seconds_since_1970());
  const int64_t begin = files.empty() ? now : std::max(now, begun_at(files.back()) + 1);
  char digits[24];
  std::snprintf(digits, sizeof digits, "%010lld", static_cast<long long>(begin));
  file_ = std::make_unique<gantry::AppendFile>(
      gantry::cat(folder_, "/", kPrefix, digits, ".", host_name(), ".", ::getpid(), trains_ ? kOfTraining : kAlone));
  const Message version = Message().number(1, seconds_since_1970()).bytes(3, "brain.Event:2");
  buffer_ = record_of(version.encoded());
}

void EventWriter::move_aside() const {
  int n = 1;
  while (fs::exists(gantry::cat(folder_, "/old-", n))) ++n;
  const fs::path old = gantry::cat(folder_, "/old-", n);
  std::error_code problem;
  fs::create_directory(old, problem);
  check(problem, "create", old);
  for (const fs::path& file : event_files(folder_)) {
    fs::rename(file, old / file.filename(), problem);
    check(problem, "move", file);
  }
}

void EventWriter::settle() {
  if (!keep_.has_value()) return;
  flush();
  file_.reset();
  int64_t kept = 0;
  for (const fs::path& file : event_files(folder_)) {
    const std::string content = content_of(file);
    const int64_t before = kept;
    std::size_t end = 0;
    for (int64_t record = 0; record == 0 || kept < *keep_; ++record) {
      const std::size_t size = record_size(std::string_view(content).substr(end));
      if (size == 0) break;
      end += size;
      kept += record > 0;  // the first one is the version, which is no event of the training
    }
    std::error_code problem;
    if (kept == before)
      fs::remove(file, problem);
    else if (end < content.size())
      fs::resize_file(file, end, problem);
    check(problem, "cut", file);
  }
  events_ = kept;
  keep_.reset();
  resumed_ = true;
}

bool EventWriter::claim(const std::string& what, int64_t step) {
  const auto [claimed, first] = claimed_.emplace(what, step);
  if (!first && claimed->second >= step) return false;
  claimed->second = step;
  return true;
}

void EventWriter::add(int64_t step, const Message& summary_value) {
  open(trains_);
  const Message event =
      Message().number(1, seconds_since_1970()).integer(2, step).message(5, Message().message(1, summary_value));
  buffer_ += record_of(event.encoded());
  ++events_;
  if (buffer_.size() >= kMostBuffered) flush();
}

void EventWriter::flush() {
  if (file_ == nullptr || buffer_.empty()) return;
  file_->append(buffer_);
  buffer_.clear();
}
