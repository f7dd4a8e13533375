#include "gantry/compose.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "config_merge.h"
#include "config_override.h"
#include "config_variables.h"
#include "gantry/text.h"
#include "problems.h"

namespace gantry {
namespace {

constexpr std::size_t kDeepestBase = 50;
constexpr std::size_t kMostFiles = 1000;
constexpr int64_t kMostValues = 1'000'000;

// The files that one file inherits from and itself, in the order in which they are merged.
class Layers {
 public:
  Layers(const ComposeSources& sources, std::vector<ConfigError>& problems) : sources_(sources), problems_(problems) {}

  void add_file(const std::string& path, const SourceLocation& named_at) {
    if (!may_open(path, named_at)) return;
    chain_.push_back(path);
    if (std::optional<Config> file = read(path, named_at)) {
      if (const Config* base = file->find("_BASE")) add_bases(*base, path);
      layers_.push_back(file->without("_BASE"));
    }
    chain_.pop_back();
  }

  Config merged() const {
    Config result;
    for (const Config& layer : layers_) result = merge(result, layer, problems_);
    return result;
  }

 private:
  bool may_open(const std::string& path, const SourceLocation& named_at) {
    const auto earlier = std::find(chain_.begin(), chain_.end(), path);
    if (earlier != chain_.end()) {
      std::vector<std::string> circle(earlier, chain_.end());
      circle.push_back(path);
      problems_.emplace_back(named_at, cat("_BASE goes in a circle: ", join(circle, " -> ")));
      return false;
    }
    if (chain_.size() > kDeepestBase) {
      problems_.emplace_back(named_at, cat("_BASE is followed ", kDeepestBase, " files deep at most"));
      return false;
    }
    if (++files_ > kMostFiles) {
      if (files_ == kMostFiles + 1) {
        problems_.emplace_back(named_at, cat("_BASE leads to more than ", kMostFiles, " files"));
      }
      return false;
    }
    return true;
  }

  std::optional<Config> read(const std::string& path, const SourceLocation& named_at) {
    Config file;
    try {
      file = sources_.read(path);
    } catch (const ConfigError& error) {
      // An error without a line is about the file as a whole: whoever named it can mend it.
      const bool about_file = error.where().line == 0 && named_at.line > 0;
      problems_.push_back(about_file ? ConfigError(named_at, cat("_BASE: ", error.what())) : error);
      return std::nullopt;
    }
    const SourceLocation start = file.where().line > 0 ? file.where() : SourceLocation{path, 1, 1};
    if (file.type() != Config::Type::map) {
      problems_.emplace_back(start, cat("a configuration is a map with the key SOLVER, but this file ",
                                        file.is_null() ? "is empty" : cat("holds ", file.describe())));
      return std::nullopt;
    }
    if (file.total_size() > kMostValues) {
      problems_.emplace_back(start, cat("the aliases of this file multiply into more than ", kMostValues, " values"));
      return std::nullopt;
    }
    return substitute_variables(file, sources_.variable, problems_);
  }

  void add_bases(const Config& base, const std::string& path) {
    const std::vector<Config> single{base};
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const Config& item : base.type() == Config::Type::list ? base.items() : single) {
      if (item.type() != Config::Type::scalar) {
        problems_.emplace_back(item.where(), cat("_BASE must be a path or a list of paths, got ", item.describe()));
        continue;
      }
      add_file((folder / item.text()).lexically_normal().string(), item.where());
    }
  }

  const ComposeSources& sources_;
  std::vector<ConfigError>& problems_;
  std::vector<Config> layers_;
  std::vector<std::string> chain_;
  std::size_t files_ = 0;
};

}  // namespace

Config compose(const std::string& path, const std::vector<std::string>& overrides, const ComposeSources& sources,
               std::vector<ConfigError>& problems) {
  Layers layers(sources, problems);
  layers.add_file(std::filesystem::path(path).lexically_normal().string(), {});
  Config config = layers.merged();
  for (const std::string& text : overrides) {
    if (config.is_null()) break;  // the file could not be read, which is the only problem worth telling
    try {
      config = apply_override(config, text);
    } catch (const ConfigError& error) {
      problems.push_back(error);
    }
  }
  sort_problems(problems);
  return config;
}

}  // namespace gantry
