#include "gantry/context.h"

#include "context_impl.h"

namespace gantry {

Context::Context(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Context::~Context() = default;

const Logger& Context::logger() const { return impl_->logger; }
World& Context::world() const { return *impl_->services->world; }
uint64_t Context::seed() const { return impl_->services->seed; }
c10::Device Context::device() const { return impl_->services->device; }
const std::string& Context::work_dir() const { return impl_->services->work_dir; }
bool Context::dry_run() const { return impl_->services->dry_run; }
FileSystems& Context::files() const { return impl_->services->files; }

std::shared_ptr<void> Context::shared_object(const std::string& key,
                                             const std::function<std::shared_ptr<void>()>& make) const {
  std::weak_ptr<void>& known = impl_->services->shared[key];
  std::shared_ptr<void> object = known.lock();
  if (object == nullptr) known = object = make();
  return object;
}

Services& services_of(const Context& context) { return *context.impl().services; }

Context& Services::make_context(const std::string& plugin) {
  auto impl = std::make_shared<Context::Impl>(Context::Impl{this, Logger(sink, plugin)});
  return contexts.emplace_back(std::move(impl));
}

const ComponentInfo& Services::info(const char* kind, const Config& component) {
  const Config* pinned = component.find("PLUGIN");
  const ComponentInfo* found =
      catalogue->find(kind, component.name(), pinned == nullptr ? "" : pinned->text(), component.where());
  if (found == nullptr)
    throw ConfigError(component.where(), "no plugin provides " + std::string(kind) + " '" + component.name() + "'");
  return *found;
}

ComponentError::Origin origin_of(const ComponentInfo& info, const SourceLocation& where, std::string point) {
  ComponentError::Origin origin;
  origin.component = info.kind + " " + info.name;
  origin.plugin = info.origin();
  origin.point = std::move(point);
  origin.where = where;
  return origin;
}

void* Context::create(const char* kind, const Config& component) const {
  Services& services = *impl_->services;
  const ComponentInfo& info = services.info(kind, component);
  Context& context = services.make_context(info.plugin);
  return guarded([&] { return info.create(component, context); },
                 [&] { return origin_of(info, component.where(), "constructor"); });
}

}  // namespace gantry
