#include "weights_export.h"

#include <fcntl.h>
#include <gantry/error.h>
#include <gantry/json.h>
#include <gantry/text.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

namespace fs = std::filesystem;

namespace {

constexpr const char* kTemporary = ".tmp-";
constexpr const char* kIndexFile = "model.safetensors.index.json";

[[noreturn]] void fail(const char* action, const fs::path& path, int error) {
  throw gantry::Error(gantry::cat("cannot ", action, " ", path.string(), ": ", std::generic_category().message(error)));
}

void flush_to_disk(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("open", path, errno);
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  if (error != 0 && error != EINVAL) fail("flush", path, error);
}

int64_t bytes_of(const ExportedTensor& tensor) { return static_cast<int64_t>(tensor.tensor.nbytes()); }

void write(const fs::path& path, const std::vector<const ExportedTensor*>& tensors, const Weights& weights) {
  std::vector<std::pair<std::string, at::Tensor>> named;
  auto metadata = weights.metadata;
  for (const ExportedTensor* tensor : tensors) {
    named.emplace_back(tensor->name, tensor->tensor);
    for (const std::string& alias : tensor->aliases) metadata.emplace_back("alias:" + alias, tensor->name);
  }
  gantry::write_safetensors(path.string(), named, metadata);
}

/// In the tensors' order, each as full as may be; a tensor that is larger than a shard has one to itself.
std::vector<std::vector<const ExportedTensor*>> shards_of(const Weights& weights, int64_t shard_bytes) {
  std::vector<std::vector<const ExportedTensor*>> shards;
  int64_t filled = 0;
  for (const ExportedTensor& tensor : weights.tensors) {
    if (shards.empty() || filled + bytes_of(tensor) > shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(&tensor);
    filled += bytes_of(tensor);
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return text;
}

void write_shards(const fs::path& folder, const Weights& weights, int64_t shard_bytes) {
  std::error_code problem;
  fs::create_directory(folder, problem);
  if (problem) fail("make the folder", folder, problem.value());
  const auto shards = shards_of(weights, shard_bytes);
  std::map<std::string, std::string> files;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    write(folder / name, shards[i], weights);
    for (const ExportedTensor* tensor : shards[i]) files[tensor->name] = name;
  }
  std::string index = gantry::cat("{\n  \"metadata\": {\"total_size\": ", weights.bytes(), "},\n  \"weight_map\": {");
  const char* separator = "\n";
  for (const auto& [name, file] : files) {
    index += gantry::cat(separator, "    ", gantry::json_string(name), ": ", gantry::json_string(file));
    separator = ",\n";
  }
  index += "\n  }\n}\n";
  std::ofstream out(folder / kIndexFile, std::ios::binary);
  if (!out.write(index.data(), static_cast<std::streamsize>(index.size())).flush())
    throw gantry::Error(gantry::cat("cannot write ", (folder / kIndexFile).string()));
  out.close();
  flush_to_disk(folder / kIndexFile);
  flush_to_disk(folder);
}

void remove_tree(const fs::path& path) {
  std::error_code problem;
  fs::remove_all(path, problem);
  if (problem) fail("remove", path, problem.value());
}

/// `staged` has the name `target` afterwards, at once, whatever was called so.
void publish(const fs::path& staged, const fs::path& target) {
  if (::rename(staged.c_str(), target.c_str()) == 0) return;
  // A folder that is not empty is exchanged and then removed; where the file system cannot, it goes first.
  if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR && errno != EISDIR) fail("rename", staged, errno);
  if (::renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    remove_tree(staged);
    return;
  }
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) fail("rename", staged, errno);
  remove_tree(target);
  if (::rename(staged.c_str(), target.c_str()) != 0) fail("rename", staged, errno);
}

}  // namespace

int64_t Weights::bytes() const {
  int64_t sum = 0;
  for (const ExportedTensor& tensor : tensors) sum += bytes_of(tensor);
  return sum;
}

std::string export_weights(const Weights& weights, const std::string& folder, const std::string& name,
                           int64_t shard_bytes) {
  const bool sharded = shard_bytes > 0 && weights.bytes() > shard_bytes && weights.tensors.size() > 1;
  const fs::path target = fs::path(folder) / (sharded ? name : name + ".safetensors");
  const fs::path staged = fs::path(folder) / gantry::cat(kTemporary, target.filename().string(), "-", ::getpid());
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) fail("make the folder", folder, problem.value());
  try {
    remove_tree(staged);
    if (sharded) {
      write_shards(staged, weights, shard_bytes);
    } else {
      std::vector<const ExportedTensor*> all;
      for (const ExportedTensor& tensor : weights.tensors) all.push_back(&tensor);
      write(staged, all, weights);
    }
    publish(staged, target);
    flush_to_disk(folder);
  } catch (...) {
    fs::remove_all(staged, problem);
    throw;
  }
  return target.string();
}

void remove_leftovers(const std::string& folder) {
  std::error_code problem;
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem))
    if (entry.path().filename().string().starts_with(kTemporary)) leftovers.push_back(entry.path());
  for (const fs::path& path : leftovers) fs::remove_all(path, problem);
}
