#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/checkpoint.h"
#include "gantry/context.h"
#include "gantry/file_system.h"
#include "gantry/session.h"
#include "gantry/world.h"
#include "run_time_limit.h"

namespace gantry {

/// What all contexts of a run share. Owned by the session, which destroys it after every component.
struct Services {
  Catalogue* catalogue = nullptr;
  std::shared_ptr<LogSink> sink;
  std::unique_ptr<World> world;
  uint64_t seed = 0;
  c10::Device device{c10::DeviceType::CPU};
  std::string work_dir;
  bool dry_run = false;
  FileSystems files;
  std::string config_text;
  std::map<std::string, std::weak_ptr<void>> shared;
  Interrupts* interrupts = nullptr;
  std::vector<std::string> signals;  ///< ENV.SIGNALS, as "SIGTERM"
  RunTimeLimit run_time;
  std::optional<CheckpointInfo> resume;                                ///< what the run goes on from: verified
  std::function<void()> restored;                                      ///< called, if set, once all of it is taken
  std::vector<std::pair<std::string, std::string>> machine, settings;  ///< for each checkpoint's account
  /// One per component, kept until the end: components may hold references.
  std::deque<Context> contexts;

  Context& make_context(const std::string& plugin);
  const ComponentInfo& info(const char* kind, const Config& component);
};

struct Context::Impl {
  Services* services;
  Logger logger;
};

/// The services behind a context, for the solver.
Services& services_of(const Context& context);

/// Who is to blame for what a component throws at `point`.
ComponentError::Origin origin_of(const ComponentInfo& info, const SourceLocation& where, std::string point);

/// Runs plugin code; whatever it throws leaves as a ConfigError or as a ComponentError with its origin.
/// `make_origin` is called only then, inside the catch block.
template <class F, class MakeOrigin>
decltype(auto) guarded(F&& f, MakeOrigin&& make_origin) {
  try {
    return f();
  } catch (const ConfigError&) {
    throw;
  } catch (const ComponentError&) {
    throw;
  } catch (...) {
    std::string cause = current_exception_message();
    throw ComponentError(make_origin(), cause);
  }
}

}  // namespace gantry
