#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "context_impl.h"
#include "gantry/config.h"
#include "gantry/context.h"
#include "gantry/error.h"
#include "gantry/kinds.h"
#include "gantry/parameters.h"
#include "gantry/plugin_entry.h"

/// A built plugin, loaded from its file, whose components a test constructs one by one.
class PluginUnderTest {
 public:
  explicit PluginUnderTest(const std::string& library) {
    const std::string path = std::string(GANTRY_TEST_PLUGIN_DIR) + "/" + library + ".so";
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // for good: plugins are never unloaded
    if (handle == nullptr) FAIL("cannot load the plugin: " << dlerror());
    info_ = reinterpret_cast<const gantry::PluginInfo* (*)()>(dlsym(handle, GANTRY_PLUGIN_ENTRY))();
  }

  /// `config` as a file would give it; what it leaves out gets its declared default.
  template <class Interface>
  std::unique_ptr<Interface> build(const std::string& name, gantry::Config config, uint64_t seed = 1) {
    for (auto entry = info_->begin; entry != info_->end; ++entry) {
      if ((*entry)->name != name) continue;
      gantry::Parameters parameters;
      (*entry)->declare(parameters);
      for (const gantry::Parameter& parameter : parameters.all()) {
        if (!config.has(parameter.name())) config = config.with(parameter.name(), parameter.default_value());
      }
      services_.seed = seed;
      gantry::Context context(std::make_shared<gantry::Context::Impl>(gantry::Context::Impl{&services_, {}}));
      config = config.as_component(gantry::KindOf<Interface>::name, name, "TEST");
      return std::unique_ptr<Interface>(static_cast<Interface*>((*entry)->create(config, context)));
    }
    FAIL("the plugin does not provide " << name);
    return nullptr;
  }

  /// What the constructor complains of, or "nothing was thrown".
  template <class Interface>
  std::string config_error(const std::string& name, const gantry::Config& config) {
    try {
      build<Interface>(name, config);
    } catch (const gantry::ConfigError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

 private:
  const gantry::PluginInfo* info_ = nullptr;
  gantry::Services services_;
};

inline gantry::Config text_config(const std::string& text) { return gantry::Config::scalar(text, {}); }

inline gantry::Config list_config(const std::vector<std::string>& items) {
  std::vector<gantry::Config> values;
  for (const std::string& item : items) values.push_back(text_config(item));
  return gantry::Config::list(std::move(values), {});
}

inline gantry::Config map_config(std::vector<std::pair<std::string, gantry::Config>> entries) {
  gantry::Config config = gantry::Config::map({}, {"test.yaml", 1, 1});
  for (auto& [key, value] : entries) config = config.with(key, std::move(value));
  return config;
}
