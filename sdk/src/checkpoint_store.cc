#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "checkpoint_json.h"
#include "file_bytes.h"
#include "gantry/checkpoint.h"
#include "gantry/error.h"
#include "gantry/safetensors.h"
#include "gantry/text.h"
#include "message.h"
#include "publish.h"

namespace gantry {
namespace {

namespace fs = std::filesystem;

// Names that begin with a dot are no checkpoints. What is called .tmp- is of no use to anyone, whatever it is;
// .old- is a checkpoint that has had to make room, on a file system that cannot exchange names.
constexpr std::string_view kTemporary = ".tmp-";
constexpr std::string_view kAside = ".old-";

std::string own_name(std::string_view prefix, std::string_view name) { return cat(prefix, name, "-", ::getpid()); }

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[64] = "";
  if (::localtime_r(&now, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &parts);
  return text;
}

[[noreturn]] void fail(std::string_view action, const fs::path& path, const std::error_code& problem) {
  throw Error(cat("cannot ", action, " ", path.string(), ": ", problem.message()));
}

bool path_exists(const fs::path& path) {
  std::error_code problem;
  return fs::exists(fs::symlink_status(path, problem));
}

/// Makes a directory and those above it that are missing, each of them flushed to the disk.
void make_directories(const fs::path& path) {
  if (path_exists(path) || path.empty()) return;
  make_directories(path.parent_path());
  std::error_code problem;
  fs::create_directory(path, problem);
  if (problem) fail("make the directory", path, problem);
  sync_directory(path.has_parent_path() ? path.parent_path().string() : ".");
}

void remove_tree(const fs::path& path) {
  std::error_code problem;
  fs::remove_all(path, problem);
  if (problem) fail("remove", path, problem);
}

void check_plain(std::string_view what, std::string_view name) {
  if (!is_plain_name(name)) throw Error(cat(what, " cannot be called ", quoted_for_message(name)));
}

using Tensors = std::vector<std::pair<std::string, at::Tensor>>;
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Of the names <parameter>/<state>: the parameters, one a line. A file has tensors sorted; PyTorch's optimizers know
/// theirs by their order in the model.
std::string parameters_in_order(const Tensors& tensors) {
  std::string text, last;
  for (const auto& [name, tensor] : tensors) {
    const std::string parameter = name.substr(0, name.rfind('/'));
    if (parameter != last) text += parameter + "\n";
    last = parameter;
  }
  return text;
}

void write_files(const fs::path& directory, const State& state, CheckpointInfo& info) {
  struct Part {
    const char* file;
    std::string_view prefix;  // cut off from the names
    Tensors tensors;
  };
  Part parts[] = {{kModelFile, "model/", {}}, {kOptimizerFile, "optimizer/", {}}, {kStateFile, "", {}}};
  for (const State::Leaf& leaf : state.leaves()) {
    for (Part& part : parts) {
      if (!leaf.path.starts_with(part.prefix) || leaf.path.size() == part.prefix.size()) continue;
      part.tensors.emplace_back(leaf.path.substr(part.prefix.size()), leaf.value);
      break;
    }
  }
  info.files.clear();
  for (const Part& part : parts) {
    Metadata metadata{{"format", "pt"}};
    if (part.prefix == "optimizer/" && !part.tensors.empty())
      metadata.emplace_back("parameters", parameters_in_order(part.tensors));
    const WrittenFile written = write_safetensors((directory / part.file).string(), part.tensors, metadata);
    info.files.push_back({part.file, written.size, written.xxh3});
  }
  write_file((directory / kAccountFile).string(), checkpoint_json(info));
  sync_directory(directory.string());
}

}  // namespace

CheckpointStore::CheckpointStore(std::string directory)
    : directory_(fs::absolute(directory).lexically_normal().string()) {
  while (directory_.size() > 1 && directory_.back() == '/') directory_.pop_back();
}

CheckpointStore::~CheckpointStore() = default;

void CheckpointStore::set_prefix(std::string prefix) {
  check_plain("checkpoints", prefix);
  if (prefix[0] == '.') throw Error(cat("checkpoints cannot be called ", quoted_for_message(prefix), ": hidden files"));
  prefix_ = std::move(prefix);
}

CheckpointInfo CheckpointStore::save(const State& state, CheckpointInfo info) {
  info.name = cat(prefix_, "-", info.iteration);
  const fs::path target = fs::path(directory_) / info.name;
  info.path = target.string();
  info.saved = local_time();
  for (const State::Leaf& leaf : state.leaves()) {
    if (leaf.global_shape.empty()) continue;
    throw Error(cat("cannot save the checkpoint ", info.name, ": ", quoted_for_message(leaf.path),
                    " is a part of a larger tensor; this version cannot write such"));
  }
  const fs::path staged = fs::path(directory_) / own_name(kTemporary, info.name);
  try {
    make_directories(directory_);
    remove_tree(staged);
    std::error_code problem;
    fs::create_directory(staged, problem);
    if (problem) fail("make the directory", staged, problem);
    write_files(staged, state, info);
    publish(staged.string(), target.string(), (fs::path(directory_) / own_name(kAside, info.name)).string());
  } catch (...) {
    const std::string reason = current_exception_message();
    std::error_code ignored;
    fs::remove_all(staged, ignored);
    throw Error(cat("cannot save the checkpoint ", info.name, ": ", reason));
  }
  // The new one must be certain before the earlier one goes, which now has the temporary name.
  sync_directory(directory_);
  std::error_code ignored;
  fs::remove_all(staged, ignored);
  return info;
}

std::vector<CheckpointInfo> CheckpointStore::list(std::vector<std::string>* problems) const {
  std::vector<CheckpointInfo> found;
  for (const fs::directory_entry& entry : directory_entries(directory_)) {
    const std::string name = entry.path().filename().string();
    std::error_code problem;
    if (name[0] == '.' || !fs::is_directory(entry.symlink_status(problem))) continue;
    try {
      found.push_back(read_checkpoint_directory(entry.path().string()));
    } catch (const Error& error) {
      if (problems != nullptr) problems->push_back(cat(name, ": ", error.what()));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.iteration < b.iteration; });
  return found;
}

void CheckpointStore::link(std::string_view link, std::string_view name) {
  check_plain("a link to a checkpoint", link);
  check_plain("a checkpoint", name);
  const fs::path path = fs::path(directory_) / link;
  const fs::path staged = fs::path(directory_) / own_name(kTemporary, link);
  std::error_code problem;
  if (!fs::is_directory(fs::path(directory_) / name, problem)) {
    throw Error(cat("cannot make the link ", path.string(), ": there is no checkpoint ", name));
  }
  fs::remove(staged, problem);
  fs::create_directory_symlink(fs::path(name), staged, problem);
  if (!problem) fs::rename(staged, path, problem);
  if (problem) {
    std::error_code ignored;
    fs::remove(staged, ignored);
    fail("make the link", path, problem);
  }
  sync_directory(directory_);
}

std::string CheckpointStore::linked(std::string_view link) const {
  std::error_code problem;
  const fs::path target = fs::read_symlink(fs::path(directory_) / link, problem);
  return problem ? "" : target.filename().string();
}

void CheckpointStore::remove_broken_links() {
  for (const fs::directory_entry& entry : directory_entries(directory_)) {
    std::error_code problem;
    if (!fs::is_symlink(entry.symlink_status(problem)) ||
        fs::status(entry.path(), problem).type() != fs::file_type::not_found) {
      continue;
    }
    if (!fs::remove(entry.path(), problem) && problem) fail("remove the link", entry.path(), problem);
  }
}

void CheckpointStore::remove(std::string_view name) {
  check_plain("a checkpoint", name);
  const fs::path path = fs::path(directory_) / name;
  const fs::path staged = fs::path(directory_) / own_name(kTemporary, name);
  if (!path_exists(path)) return;
  remove_tree(staged);
  std::error_code problem;
  fs::rename(path, staged, problem);
  if (problem) fail("remove the checkpoint", path, problem);
  sync_directory(directory_);
  if (put_off_ == nullptr)
    remove_tree(staged);
  else
    put_off_->push_back(staged.string());
}

void CheckpointStore::remove_leftovers() {
  for (const fs::directory_entry& entry : directory_entries(directory_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kAside)) {
      const std::string checkpoint = name.substr(kAside.size(), name.rfind('-') - kAside.size());
      if (is_plain_name(checkpoint) && put_back(entry.path().string(), (fs::path(directory_) / checkpoint).string())) {
        continue;
      }
      remove_tree(entry.path());
    } else if (name.starts_with(kTemporary)) {
      remove_tree(entry.path());
    }
  }
}

}  // namespace gantry
