#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit/plugin_under_test.h"

/// Several built plugins as a catalogue, for components that have components.
class NestedPlugins final : public gantry::Catalogue {
 public:
  explicit NestedPlugins(const std::vector<std::string>& libraries) {
    for (const std::string& library : libraries) load(library);
    services_.catalogue = this;
    services_.seed = 1;
  }

  /// `config` as a file would give it: what it and the components in it leave out gets its declared default.
  template <class Interface>
  std::unique_ptr<Interface> build(const std::string& name, const gantry::Config& config) {
    const gantry::Context& context =
        services_.contexts.emplace_back(std::make_shared<gantry::Context::Impl>(gantry::Context::Impl{&services_, {}}));
    return context.build<Interface>(complete(gantry::KindOf<Interface>::name, config.with("NAME", text(name))));
  }

  const gantry::ComponentInfo* find(const std::string& kind, const std::string& name, const std::string&,
                                    const gantry::SourceLocation&) override {
    const auto found = known_.find({kind, name});
    if (found == known_.end()) FAIL("no plugin of this test provides " << kind << " " << name);
    return &found->second;
  }
  std::vector<std::string> names(const std::string&) const override { return {}; }
  std::string hint(const std::string&, const std::string&) const override { return {}; }

 private:
  static gantry::Config text(const std::string& text) { return gantry::Config::scalar(text, {}); }

  void load(const std::string& library) {
    const std::string path = std::string(GANTRY_TEST_PLUGIN_DIR) + "/" + library + ".so";
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // for good: plugins are never unloaded
    if (handle == nullptr) FAIL("cannot load the plugin: " << dlerror());
    const auto* info = reinterpret_cast<const gantry::PluginInfo* (*)()>(dlsym(handle, GANTRY_PLUGIN_ENTRY))();
    for (auto entry = info->begin; entry != info->end; ++entry) {
      gantry::ComponentInfo component;
      component.kind = (*entry)->kind;
      component.name = (*entry)->name;
      component.plugin = library;
      (*entry)->declare(component.parameters);
      component.create = (*entry)->create;
      known_.emplace(std::pair{component.kind, component.name}, std::move(component));
    }
  }

  gantry::Config complete(const std::string& kind, gantry::Config config) {
    const std::string name = config.find("NAME")->text();
    for (const gantry::Parameter& parameter : find(kind, name, {}, {})->parameters.all()) {
      if (!config.has(parameter.name())) config = config.with(parameter.name(), parameter.default_value());
      const gantry::Config& value = *config.find(parameter.name());
      if (value.is_null()) continue;
      if (parameter.type() == gantry::ValueType::component) {
        config = config.with(parameter.name(), complete(parameter.kind(), value));
      } else if (parameter.type() == gantry::ValueType::components) {
        std::vector<gantry::Config> items;
        for (const gantry::Config& item : value.items()) items.push_back(complete(parameter.kind(), item));
        config = config.with(parameter.name(), gantry::Config::list(std::move(items), value.where()));
      }
    }
    return config.as_component(kind, name, "TEST");
  }

  std::map<std::pair<std::string, std::string>, gantry::ComponentInfo> known_;
  gantry::Services services_;
};

/// {NAME: name, ...}
inline gantry::Config component_config(const std::string& name,
                                       std::vector<std::pair<std::string, gantry::Config>> entries = {}) {
  entries.insert(entries.begin(), {"NAME", text_config(name)});
  return map_config(std::move(entries));
}

inline gantry::Config components_config(std::vector<gantry::Config> items) {
  return gantry::Config::list(std::move(items), {});
}
