#include <algorithm>
#include <iostream>

#include "gantry/compose.h"
#include "gantry/describe.h"
#include "gantry/text.h"
#include "host/arguments.h"
#include "host/commands.h"
#include "host/console_log.h"
#include "host/plugin_catalogue.h"

/// list and describe.

namespace gantry::host {
namespace {

PluginCatalogue make_catalogue(const Arguments& arguments) {
  const auto log = std::make_shared<ConsoleLog>(ConsoleLog::Stream::err, LogLevel::warn);
  return PluginCatalogue(arguments.plugin_dir_values(), Logger(log, ""));
}

std::vector<ComponentInfo> described(const std::string& name, PluginCatalogue& catalogue) {
  if (name == "ENV") return {{"", name, "The process: seed, device, threads.", "", "", "", env_parameters()}};
  std::vector<ComponentInfo> found;
  for (const std::string& kind : catalogue.index().kinds_of(name))
    found.push_back(*catalogue.find(kind, name, "", {"gantry describe", 0, 0}));
  if (!found.empty()) return found;
  const std::vector<std::string> near = near_matches(name, catalogue.names(""));
  const std::string hint = catalogue.hint("", name);
  fail_usage("describe", cat("no plugin provides '", name, "'",
                             near.empty() ? "; gantry list shows all" : "; did you mean " + join(near, " or ") + "?",
                             hint.empty() ? "" : "\n", hint));
}

}  // namespace

int command_list(const std::vector<std::string>& words) {
  std::vector<std::string> kinds = known_kinds();
  Arguments arguments("list", "[KIND]",
                      "Lists the components that plugins provide, of one kind or all:\n" + join(kinds, ", ") + ".");
  arguments.flag("json", "print a JSON array").plugin_dirs();
  if (!arguments.parse(words, 0, 1)) return kExitDone;
  if (!arguments.operands().empty()) {
    const std::string& kind = arguments.operands()[0];
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      fail_usage("list", cat("unknown kind '", kind, "'; known: ", join(kinds, ", ")));
    kinds = {kind};
  }
  PluginCatalogue catalogue = make_catalogue(arguments);
  std::vector<ComponentInfo> rows;
  for (const std::string& kind : kinds)
    for (const std::string& name : catalogue.names(kind)) rows.push_back(catalogue.listed(kind, name));
  if (arguments.has("json")) {
    std::cout << components_json(rows) << std::endl;
  } else if (rows.empty()) {
    std::cout << "nothing found; searched for plugins in\n" << catalogue.index().directories_text();
  } else {
    std::cout << components_text(rows);
  }
  return kExitDone;
}

int command_describe(const std::vector<std::string>& words) {
  Arguments arguments("describe", "NAME",
                      "Shows what a component does, its parameters, and YAML to start from. ENV is a name, too.");
  arguments.flag("json", "print a JSON array").plugin_dirs();
  if (!arguments.parse(words, 1, 1)) return kExitDone;
  PluginCatalogue catalogue = make_catalogue(arguments);
  const std::vector<ComponentInfo> found = described(arguments.operands()[0], catalogue);
  if (arguments.has("json")) {
    std::cout << components_json(found) << std::endl;
  } else {
    for (const ComponentInfo& info : found) std::cout << (&info == &found.front() ? "" : "\n") << component_text(info);
  }
  return kExitDone;
}

}  // namespace gantry::host
