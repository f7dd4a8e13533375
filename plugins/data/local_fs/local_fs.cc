#include <filesystem>
#include <utility>

#include "gantry/file_system.h"
#include "gantry/gantry.h"

namespace fs = std::filesystem;

namespace gantry {

namespace {

// Gives every path the place that it has on this machine; all work is done by the file system of the SDK.
class LocalFs final : public FileSystem {
 public:
  static void declare(Parameters& p) {
    FileSystem::declare_common(p);
    p.add<std::string>("PREFIX", "")
        .no_effect_on_result()
        .help("What its paths begin with, such as data://; empty: any path.");
    p.add<std::string>("ROOT", "")
        .no_effect_on_result()
        .help("The folder that PREFIX stands for; empty: the current one. Paths cannot lead out of it.");
    const std::string instead = "leave it out: files of this machine are not copied";
    p.foreign("AUTO_CLEAN", {"true", "false"}, instead);
    p.foreign("ENABLE_MD5_PATH", {"true", "false"}, instead);
  }

  LocalFs(const Config& config, Context&)
      : local_(make_local_file_system()),
        prefix_(config.get<std::string>("PREFIX")),
        root_(config.get<std::string>("ROOT")) {
    if (prefix_.empty() && !root_.empty())
      throw config.error("ROOT", cat("is '", root_, "', but no paths lead there: PREFIX is empty"));
  }

  std::string prefix() const override { return prefix_; }

  bool exists(const std::string& path) const override { return local_->exists(place(path)); }
  bool is_file(const std::string& path) const override { return local_->is_file(place(path)); }
  bool is_dir(const std::string& path) const override { return local_->is_dir(place(path)); }
  int64_t size(const std::string& path) const override { return local_->size(place(path)); }

  std::vector<std::string> walk_dir(const std::string& path) const override {
    const std::string folder = place(path);
    std::vector<std::string> files = local_->walk_dir(folder);
    // `path` may name the folder with or without a slash at its end.
    const std::string given = path.ends_with('/') || path == prefix_ ? path : path + "/";
    for (std::string& file : files) {
      file.erase(0, folder.size());
      while (file.starts_with('/')) file.erase(0, 1);
      file.insert(0, given);
    }
    return files;
  }

  std::string get_object(const std::string& path) const override { return local_->get_object(place(path)); }
  void get_object_to_local_file(const std::string& path, const std::string& local_path) const override {
    local_->get_object_to_local_file(place(path), local_path);
  }
  void get_dir_to_local_dir(const std::string& path, const std::string& local_path) const override {
    local_->get_dir_to_local_dir(place(path), local_path);
  }

  void put_object(std::string_view bytes, const std::string& path) const override {
    local_->put_object(bytes, place(path));
  }
  void put_object_from_local_file(const std::string& local_path, const std::string& path) const override {
    local_->put_object_from_local_file(local_path, place(path));
  }
  void put_dir_from_local_dir(const std::string& local_path, const std::string& path) const override {
    local_->put_dir_from_local_dir(local_path, place(path));
  }
  void make_dir(const std::string& path) const override { local_->make_dir(place(path)); }
  void make_link(const std::string& target, const std::string& link) const override {
    local_->make_link(place(target), place(link));
  }

  std::string map_to_local(const std::string& path) const override { return place(path); }

 private:
  std::string place(const std::string& path) const {
    if (!path.starts_with(prefix_)) throw Error(cat(path, " does not begin with '", prefix_, "'"));
    if (prefix_.empty()) return local_->map_to_local(path);
    const fs::path below = fs::path(path.substr(prefix_.size())).relative_path().lexically_normal();
    if (below.begin() != below.end() && *below.begin() == "..")
      throw Error(cat(path, " leads out of the folder that '", prefix_, "' stands for"));
    fs::path full = fs::path(root_.empty() ? "." : root_) / below;
    if (!full.has_filename()) full = full.parent_path();  // a slash at the end
    return full.string();
  }

  const std::unique_ptr<FileSystem> local_;
  const std::string prefix_, root_;
};

}  // namespace

GANTRY_PLUGIN("gantry-local-fs", GANTRY_VERSION);
GANTRY_FILE_SYSTEM(LocalFs, "LocalFs", "Files of this machine, also under a prefix that stands for a folder.");

}  // namespace gantry
