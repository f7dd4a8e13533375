#include "run_facts.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "context_impl.h"
#include "gantry/compose.h"
#include "gantry/text.h"
#include "gantry/version.h"

namespace gantry {

namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string one_line(const Config& value) {
  if (value.type() == Config::Type::scalar) return value.text();
  std::vector<std::string> items;
  for (const Config& item : value.items()) items.push_back(one_line(item));
  return cat("[", join(items, ", "), "]");
}

class SettingsReader {
 public:
  explicit SettingsReader(Catalogue& catalogue) : catalogue_(catalogue) {}

  void add(const Config& values, const Parameters& parameters, const std::string& path) {
    for (const Parameter& parameter : parameters.all()) {
      const Config* value = values.find(parameter.name());
      if (value == nullptr || value->is_null() || !parameter.affects_result()) continue;
      const std::string inner = cat(path, ".", parameter.name());
      if (parameter.type() == ValueType::component)
        component(*value, inner);
      else if (parameter.type() == ValueType::components)
        components(*value, inner);
      else if (parameter.type() == ValueType::section)
        add(*value, *parameter.keys(), inner);
      else if (parameter.type() == ValueType::sections)
        for (std::size_t i = 0; i < value->items().size(); ++i)
          add(value->items()[i], *parameter.keys(), cat(inner, "[", i, "]"));
      else
        settings.push_back({inner, one_line(*value), value->where().file.empty() ? values.where() : value->where()});
    }
  }

  void component(const Config& config, const std::string& path) {
    const ComponentInfo* info = find(config);
    if (info == nullptr) return;
    settings.push_back({path, config.name(), config.where()});
    add(config, info->parameters, path);
  }

  Settings settings;

 private:
  const ComponentInfo* find(const Config& config) {
    const Config* pinned = config.find("PLUGIN");
    return catalogue_.find(config.kind(), config.name(), pinned == nullptr ? "" : pinned->text(), config.where());
  }

  // By NAME, so that a neutral component more or less moves no other's path.
  void components(const Config& list, const std::string& path) {
    std::map<std::string, int> seen;
    for (const Config& item : list.items()) {
      const ComponentInfo* info = find(item);
      if (info == nullptr || info->parameters.is_neutral()) continue;
      const int count = ++seen[item.name()];
      component(item, count == 1 ? cat(path, "[", item.name(), "]") : cat(path, "[", item.name(), "#", count, "]"));
    }
  }

  Catalogue& catalogue_;
};

}  // namespace

Facts machine_facts(const Services& services) {
  return {{"gantry", GANTRY_VERSION},
          {"torch", TORCH_VERSION},
          {"device", services.device.str()},
          {"cpu", cpu_name()},
          {"cpu_capability", at::get_cpu_capability()},
          {"threads", cat(at::get_num_threads())},
          {"processes", cat(services.world->size())}};
}

Settings result_settings(const Config& resolved, Catalogue& catalogue) {
  SettingsReader reader(catalogue);
  reader.add(resolved.get<Config>("ENV"), env_parameters(), "ENV");
  reader.component(resolved.get<Config>("SOLVER"), "SOLVER");
  return std::move(reader.settings);
}

Facts facts_of(const Settings& settings) {
  Facts facts;
  for (const Setting& setting : settings) facts.emplace_back(setting.key, setting.value);
  return facts;
}

std::vector<std::string> fact_differences(const Facts& there, const Facts& here) {
  const auto find = [](const Facts& facts, const std::string& name) {
    return std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == name; });
  };
  std::vector<std::string> lines;
  for (const auto& [name, value] : there) {
    const auto mine = find(here, name);
    if (mine == here.end())
      lines.push_back(cat(name, " ", value, " there, absent here"));
    else if (mine->second != value)
      lines.push_back(cat(name, " ", value, " there, ", mine->second, " here"));
  }
  for (const auto& [name, value] : here)
    if (find(there, name) == there.end()) lines.push_back(cat(name, " absent there, ", value, " here"));
  return lines;
}

}  // namespace gantry
