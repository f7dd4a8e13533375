#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "checkpoint_json.h"
#include "file_bytes.h"
#include "gantry/checkpoint.h"
#include "gantry/error.h"
#include "gantry/safetensors.h"
#include "gantry/text.h"
#include "message.h"
#include "xxh3.h"

namespace gantry {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxAccount = 64'000'000;  // bytes

/// What is wrong with a file; empty when nothing is. Read, not mapped: a file that shrinks meanwhile ends no program.
std::string defect(const std::string& path, const CheckpointInfo::File& expected) {
  std::error_code problem;
  if (!fs::exists(fs::status(path, problem))) return "is missing";
  try {
    InputFile file(path);
    if (file.size() != expected.size) return cat("has ", file.size(), " bytes, not ", expected.size);
    Xxh3 hash;
    std::string piece(std::size_t{1} << 20, '\0');
    while (const std::size_t size = file.read(piece.data(), piece.size())) hash.update(piece.data(), size);
    if (const std::string found = hash.hex(); found != expected.xxh3) {
      return cat("is damaged: its XXH3 is ", found, ", not ", expected.xxh3);
    }
    if (path.ends_with(".safetensors")) SafetensorsFile::open(path);
    return {};
  } catch (const Error& error) {
    return cat("cannot be used: ", error.what());
  }
}

void add_file(State& state, const CheckpointInfo& info, const char* name, const std::string& prefix) {
  const SafetensorsFile file = SafetensorsFile::open((fs::path(info.path) / name).string());
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    const std::string path = prefix + entry.name;
    if (state.has(path)) {
      throw Error(cat(file.path(), ": ", quoted_for_message(entry.name), " stands in another file of the checkpoint"));
    }
    state.set(path, file.tensor(entry.name));
  }
}

}  // namespace

CheckpointInfo read_checkpoint_directory(const std::string& path) {
  const std::string account = (fs::path(path) / kAccountFile).string();
  std::error_code problem;
  if (const fs::file_status status = fs::status(account, problem); !fs::exists(status)) {
    if (status.type() == fs::file_type::not_found) throw Error(cat("it has no ", kAccountFile));
    throw Error(cat("cannot read its ", kAccountFile, ": ", problem.message()));
  }
  CheckpointInfo info = parse_checkpoint_json(read_file(account, kMaxAccount));
  info.path = path;
  info.name = fs::path(path).filename().string();
  return info;
}

CheckpointInfo read_checkpoint_info(const std::string& path) {
  std::error_code problem;
  fs::path directory = fs::absolute(path, problem).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();  // "a/b/"
  // A link is followed, so that the name is the checkpoint's.
  if (!problem && fs::is_symlink(fs::symlink_status(directory, problem))) directory = fs::canonical(directory, problem);
  const fs::file_status status = fs::status(directory, problem);
  if (status.type() == fs::file_type::not_found) throw Error(cat(path, ": there is no such checkpoint"));
  if (problem) throw Error(cat(path, ": cannot read the checkpoint: ", problem.message()));
  if (!fs::is_directory(status)) throw Error(cat(path, ": it is a file; a checkpoint is a directory"));
  try {
    return read_checkpoint_directory(directory.string());
  } catch (const Error& error) {
    throw Error(cat(path, ": ", error.what()));
  }
}

void verify_checkpoint(const CheckpointInfo& info) {
  std::vector<std::string> defects;
  for (const CheckpointInfo::File& file : info.files) {
    const std::string what = defect((fs::path(info.path) / file.name).string(), file);
    if (!what.empty()) defects.push_back(cat(file.name, " ", what));
  }
  if (defects.empty()) return;
  throw Error(cat(info.path, ": the checkpoint cannot be used: ", join(defects, "; ")));
}

State read_checkpoint(const CheckpointInfo& info) {
  State state;
  add_file(state, info, kModelFile, "model/");
  add_file(state, info, kOptimizerFile, "optimizer/");
  add_file(state, info, kStateFile, "");
  return state;
}

State read_checkpoint(const CheckpointInfo& info, std::string_view part) {
  State state;
  if (part == "model") {
    add_file(state, info, kModelFile, "model/");
  } else if (part == "optimizer") {
    add_file(state, info, kOptimizerFile, "optimizer/");
  } else if (part == "state") {
    add_file(state, info, kStateFile, "");
  } else {
    throw std::logic_error(cat("a checkpoint has the parts model, optimizer and state, not '", part, "'"));
  }
  return state;
}

}  // namespace gantry
