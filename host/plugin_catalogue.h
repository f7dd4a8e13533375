#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/log.h"
#include "gantry/plugin_entry.h"
#include "host/plugin_index.h"

namespace gantry::host {

/// The components of an index's plugins. A plugin is loaded when one of its components is asked for, and
/// only after its notes have been found to fit.
class PluginCatalogue final : public Catalogue {
 public:
  PluginCatalogue(PluginIndex index, Logger logger);
  /// Of the whole search path, where there is no configuration; `plugin_dirs`: --plugin-dir.
  PluginCatalogue(const std::vector<std::string>& plugin_dirs, Logger logger);

  const ComponentInfo* find(const std::string& kind, const std::string& name, const std::string& pinned,
                            const SourceLocation& asked_by) override;
  std::vector<std::string> names(const std::string& kind) const override;
  std::string hint(const std::string& kind, const std::string& name) const override;

  /// What lists show of a component that some plugin provides: also of one that cannot be used.
  ComponentInfo listed(const std::string& kind, const std::string& name);

  const PluginIndex& index() const { return index_; }

 private:
  /// A request, for messages.
  struct Wanted {
    const std::string& kind;
    const std::string& name;
    const SourceLocation& asked_by;
  };
  struct Loaded {
    std::vector<const ComponentEntry*> entries;
    std::string failure;  ///< not empty: it could not be loaded, and is not tried again
  };

  const PluginFile* choose(const Wanted& wanted);
  const PluginFile* pin(const Wanted& wanted, const std::string& path);
  std::unique_ptr<ComponentInfo> make(const Wanted& wanted, const PluginFile& file);
  const Loaded& load(const PluginFile& file);
  [[noreturn]] void refuse(const Wanted& wanted, const PluginFile& file, const std::vector<Difference>& why) const;

  PluginIndex index_;
  Logger logger_;
  std::deque<PluginFile> pinned_;
  std::map<std::string, Loaded> loaded_;  // by path
  std::map<std::tuple<std::string, std::string, std::string>, std::unique_ptr<ComponentInfo>> components_;
  std::set<std::string> warned_;
};

}  // namespace gantry::host
