#include "gantry/command.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "context_impl.h"
#include "gantry/error.h"
#include "gantry/run_command.h"

namespace gantry {

struct CommandContext::Impl {
  Logger logger;
  const CommandServices& services;
  std::string name;
};

const Logger& CommandContext::logger() const { return impl_.logger; }
Catalogue& CommandContext::catalogue() const { return impl_.services.catalogue; }
const std::string& CommandContext::name() const { return impl_.name; }
Config CommandContext::resolve(const std::string& path, const std::vector<std::string>& overrides) const {
  return impl_.services.resolve(path, overrides);
}
const std::vector<std::string>& CommandContext::program() const { return impl_.services.program; }

Command::~Command() = default;

int run_command(const std::string& registered_name, const std::vector<std::string>& arguments,
                const CommandServices& given) {
  Services services;
  services.catalogue = &given.catalogue;
  services.sink = given.sink;
  services.world = make_single_world();
  const SourceLocation where{"command line", 0, 0};
  const Config config = Config::map({}, where).as_component(KindOf<Command>::name, registered_name, "");
  const ComponentInfo& info = services.info(KindOf<Command>::name, config);
  const std::unique_ptr<Command> command = services.make_context("").build<Command>(config);

  std::string name = registered_name;
  std::replace(name.begin(), name.end(), '.', ' ');
  const CommandContext::Impl impl{Logger(given.sink, info.plugin), given, std::move(name)};
  CommandContext context(impl);
  try {
    if (std::any_of(arguments.begin(), arguments.end(), [](const auto& a) { return a == "--help" || a == "-h"; })) {
      const std::string usage = command->usage();
      std::cout << usage << (usage.ends_with('\n') ? "" : "\n") << std::flush;
      return 0;
    }
    return command->run(arguments, context);
  } catch (const Error&) {
    throw;
  } catch (...) {
    const std::string cause = current_exception_message();
    throw ComponentError(origin_of(info, where, "run"), cause);
  }
}

}  // namespace gantry
