#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/kinds.h"
#include "gantry/log.h"

namespace gantry {

class FileSystems;
class World;

/// What a component may reach beyond its own configuration: handed to its constructor. Main thread only;
/// outlives every component, so keeping a reference is fine. There are no globals to reach for.
class GANTRY_API Context final {
 public:
  const Logger& logger() const;  ///< tagged with the component's plugin
  World& world() const;          ///< the processes of this run
  uint64_t seed() const;         ///< ENV.SEED: derive every random number from it
  c10::Device device() const;    ///< ENV.DEVICE, resolved: where the model lives
  /// Absolute. Created only when everything is built: write nothing there before `before_solve`.
  const std::string& work_dir() const;
  bool dry_run() const;
  FileSystems& files() const;  ///< where paths of the configuration lead: SOLVER.FILE_SYSTEM

  /// One object for all who ask under this key, until the last of them is gone: a file that several hooks append to.
  ///   writer_ = context.shared<EventWriter>("tensorboard:" + folder, [&] { return
  ///   std::make_shared<EventWriter>(folder); });
  /// The key begins with the plugin's name: everyone who uses it must mean the same class.
  template <class T, class Make>
  std::shared_ptr<T> shared(const std::string& key, Make&& make) const {
    return std::static_pointer_cast<T>(shared_object(key, [&]() -> std::shared_ptr<void> { return make(); }));
  }

  /// Builds a nested component that was declared with Parameters::component or components:
  ///   backbone_ = context.build<gantry::Module>(config.get<gantry::Config>("BACKBONE"));
  /// Convert to std::shared_ptr for LibTorch modules. Whatever the constructor throws arrives as a
  /// ConfigError or as a ComponentError that names the component, its plugin and its place.
  template <class Interface>
  std::unique_ptr<Interface> build(const Config& component) const {
    return std::unique_ptr<Interface>(static_cast<Interface*>(create(KindOf<Interface>::name, component)));
  }

  struct Impl;
  explicit Context(std::shared_ptr<const Impl> impl);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  const Impl& impl() const { return *impl_; }  ///< the SDK's own

 private:
  void* create(const char* kind, const Config& component) const;
  std::shared_ptr<void> shared_object(const std::string& key, const std::function<std::shared_ptr<void>()>& make) const;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace gantry
