#include <algorithm>
#include <filesystem>
#include <map>

#include "checkpoint_json.h"
#include "file_bytes.h"
#include "gantry/error.h"
#include "gantry/pretrained.h"
#include "gantry/text.h"
#include "json_read.h"
#include "message.h"

namespace gantry {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxIndex = 100'000'000;  // bytes
constexpr int kIndexDepth = 16;
constexpr std::string_view kAlias = "alias:";
constexpr const char* kIndexFile = "model.safetensors.index.json";

/// Name of each tensor, and the file that has it.
std::vector<std::pair<std::string, std::string>> read_index(const std::string& path) {
  std::vector<std::pair<std::string, std::string>> files;
  try {
    const JsonValue root = read_json(read_file(path, kMaxIndex), kIndexDepth);
    const JsonValue* map = root.member("weight_map");
    if (map == nullptr || map->kind != JsonValue::Kind::object)
      throw Error("it has no \"weight_map\", from names of tensors to files: it is no index of a sharded model");
    for (const auto& [name, value] : map->members) {
      const auto* file = std::get_if<std::string>(&value.scalar);
      if (value.kind != JsonValue::Kind::scalar || file == nullptr || !is_plain_name(*file))
        throw Error(cat("its weight_map does not give the name of a file beside it for ", quoted_for_message(name)));
      files.emplace_back(name, *file);
    }
  } catch (const Error& error) {
    throw Error(cat(path, ": ", error.what()));
  }
  return files;
}

/// In a checkpoint, bytes that are not what was saved are found out.
void check_model_of(const fs::path& folder) {
  if (!fs::exists(folder / kAccountFile)) return;
  CheckpointInfo info = read_checkpoint_info(folder.string());
  std::erase_if(info.files, [](const CheckpointInfo::File& file) { return file.name != kModelFile; });
  verify_checkpoint(info);
}

/// The file to open for a path that may be a folder.
fs::path resolved(const std::string& path) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (!fs::exists(status)) throw Error(cat(path, ": there is no such file or folder"));
  if (!fs::is_directory(status)) return path;
  const fs::path folder = path;
  if (fs::exists(folder / kModelFile)) {
    check_model_of(folder);
    return folder / kModelFile;
  }
  if (fs::exists(folder / kIndexFile)) return folder / kIndexFile;
  std::vector<std::string> there;
  for (const fs::directory_entry& entry : directory_entries(path))
    if (entry.path().extension() == ".safetensors") there.push_back(entry.path().filename().string());
  throw Error(cat(path, ": the folder has neither ", kModelFile, " nor ", kIndexFile,
                  there.empty() ? "" : "; it has " + join(there, ", ") + ": name the file"));
}

}  // namespace

WeightFiles WeightFiles::open(const std::string& path) {
  WeightFiles result;
  std::map<std::string, std::pair<std::size_t, std::string>> places;  // sorted by name
  const fs::path file = resolved(path);
  if (file.extension() != ".json") {
    result.files_.push_back(std::make_shared<const SafetensorsFile>(SafetensorsFile::open(file.string())));
    for (const SafetensorsFile::Entry& entry : result.files_[0]->entries()) places[entry.name] = {0, entry.name};
  } else {
    std::map<std::string, std::size_t> opened;
    for (const auto& [name, shard] : read_index(file.string())) {
      const auto [at, fresh] = opened.emplace(shard, result.files_.size());
      if (fresh)
        result.files_.push_back(
            std::make_shared<const SafetensorsFile>(SafetensorsFile::open((file.parent_path() / shard).string())));
      if (result.files_[at->second]->find(name) == nullptr)
        throw Error(cat(file.string(), ": ", shard, " should have ", quoted_for_message(name), ", and has not"));
      places[name] = {at->second, name};
    }
  }
  for (std::size_t i = 0; i < result.files_.size(); ++i) {
    for (const auto& [key, stored] : result.files_[i]->metadata()) {
      // Python's safetensors.torch.save_model writes the bare name.
      const std::string name = key.starts_with(kAlias) ? key.substr(kAlias.size()) : key;
      if (result.files_[i]->find(stored) != nullptr) places.emplace(name, std::make_pair(i, stored));
    }
  }
  for (auto& [name, place] : places) {
    result.names_.push_back(name);
    result.places_.push_back(std::move(place));
  }
  return result;
}

at::Tensor WeightFiles::tensor(const std::string& name) const {
  const auto at = std::lower_bound(names_.begin(), names_.end(), name);
  if (at == names_.end() || *at != name) throw Error(cat("there is no tensor ", quoted_for_message(name)));
  const auto& [file, stored] = places_[static_cast<std::size_t>(at - names_.begin())];
  return files_[file]->tensor(stored);
}

}  // namespace gantry
