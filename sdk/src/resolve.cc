#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "config_read.h"
#include "gantry/compose.h"
#include "gantry/text.h"
#include "hook_rules.h"
#include "message.h"
#include "parameter_unit.h"
#include "problems.h"
#include "run_mode.h"

namespace gantry {
namespace {

template <class T>
T value_of(const Config& value) {
  T out{};
  read(value, out);
  return out;
}

// One checked scalar in the one spelling that its type has, so that equal values have equal text.
Config canonical_scalar(const Config& value, const Parameter& declared) {
  const SourceLocation& where = value.where();
  switch (declared.type()) {
    case ValueType::boolean:
      return Config::scalar(value_of<bool>(value) ? "true" : "false", where);
    case ValueType::integer:
    case ValueType::integers:
      return Config::scalar(std::to_string(value_of<int64_t>(value)), where);
    case ValueType::number:
    case ValueType::numbers:
      return Config::scalar(number_text(value_of<double>(value)), where);
    case ValueType::string:
    case ValueType::strings:
      return Config::scalar(value.text(), where, /*quoted=*/true);
    case ValueType::interval: {
      Interval interval;
      read(value, interval, bare_unit(declared));
      return Config::scalar(interval_text(interval), where);
    }
    case ValueType::component:
    case ValueType::components:
    case ValueType::section:
    case ValueType::sections:
      break;
  }
  return value;
}

Config canonical(const Config& value, const Parameter& declared) {
  const bool is_list = declared.type() == ValueType::integers || declared.type() == ValueType::numbers ||
                       declared.type() == ValueType::strings;
  if (!is_list) return canonical_scalar(value, declared);
  std::vector<Config> items;
  if (value.type() == Config::Type::list) {
    for (const Config& item : value.items()) items.push_back(canonical_scalar(item, declared));
  } else {
    items.push_back(canonical_scalar(value, declared));
  }
  return Config::list(std::move(items), value.where());
}

std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters.all()) names.push_back(parameter.name());
  return names;
}

// "a number, > 0", "an optimizer", "a list of hooks, each {NAME: ...}"
std::string expected_text(const Parameter& parameter) {
  std::string text;
  if (parameter.type() == ValueType::component) {
    text = cat(with_article(parameter.kind()), ", {NAME: ...}");
  } else if (parameter.type() == ValueType::components) {
    text = cat("a list of ", parameter.kind(), " components, each {NAME: ...}");
  } else {
    text = value_type_text(parameter.type());
  }
  if (!parameter.range_text().empty()) text += cat(", ", parameter.range_text());
  if (!parameter.choices().empty()) text += cat(", one of ", join(parameter.choices(), ", "));
  return text;
}

Parameters top_parameters() {
  Parameters parameters;
  parameters.optional<std::vector<std::string>>("PLUGIN_DIRS")
      .no_effect_on_result()
      .help("Folders to search for plugins, relative to the file.");
  return parameters;
}

class Resolver {
 public:
  Resolver(Catalogue& catalogue, std::vector<ConfigError>& problems, std::vector<ConfigError>& notes)
      : catalogue_(catalogue), problems_(problems), notes_(notes) {}

  Config top(const Config& composed) {
    if (composed.type() != Config::Type::map) {
      report(composed.where(), cat("a configuration is a map with the key SOLVER, got ", composed.describe()));
      return composed;
    }
    const std::vector<std::string> known{"ENV", "SOLVER", "PLUGIN_DIRS"};
    for (const Config::Entry& entry : composed.entries()) {
      if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
      report(entry.where,
             cat("unknown key ", quoted_for_message(entry.key), " at the top level", suggestions(entry.key, known)));
    }
    std::vector<Config::Entry> entries;
    entries.push_back({"ENV", composed.where("ENV"), environment(composed)});
    entries.push_back({"SOLVER", composed.where("SOLVER"), solver(composed)});
    const Parameters others = top_parameters();
    for (const Parameter& parameter : others.all()) {
      if (composed.has(parameter.name())) add_value(composed, parameter, parameter.name(), "", entries);
    }
    return Config::map(std::move(entries), composed.where());
  }

 private:
  Config environment(const Config& composed) {
    Config given = Config::map({}, composed.where());
    if (composed.has("ENV")) given = *composed.find("ENV");
    if (given.type() != Config::Type::map) {
      report(given.where(), cat("ENV must be a map such as {SEED: 1}, got ", given.describe()));
      return given;
    }
    return Config::map(values(given, env_parameters(), "ENV", "ENV", {}), given.where());
  }

  Config solver(const Config& composed) {
    if (!composed.has("SOLVER")) {
      report(composed.where("SOLVER"), "SOLVER is missing: write SOLVER: {NAME: TrainValSolver, ...}");
      return Config::null(composed.where());
    }
    const Config& given = *composed.find("SOLVER");
    const ComponentInfo* info = nullptr;
    const Config resolved = component(given, "solver", "SOLVER", "SOLVER", info);
    if (info) check_hook_rules(resolved, *info, hooks_, problems_);
    if (info && info->parameters.find("MODE")) check_mode(resolved, problems_);
    return resolved;
  }

  // `key` is what the value is called in messages. `info` becomes the component's, or stays null.
  Config component(const Config& given, const std::string& kind, const std::string& key, const std::string& path,
                   const ComponentInfo*& info) {
    if (given.type() != Config::Type::map) {
      const std::string name = given.type() == Config::Type::scalar ? given.text() : "...";
      report(given.where(), cat(key, " must be ", with_article(kind), ", which is a map with a NAME, got ",
                                given.describe(), ": write {NAME: ", name, "}"));
      return given;
    }
    const Config* name = given.find("NAME");
    if (!name || name->type() != Config::Type::scalar) {
      const std::string problem =
          !name || name->is_null() ? cat(key, " has no NAME") : cat("the NAME of ", key, " is ", name->describe());
      const std::vector<std::string> names = catalogue_.names(kind);
      report(name ? name->where() : given.where(),
             cat(problem, ": it must name ", with_article(kind),
                 ", as in {NAME: ", names.empty() ? "..." : names.front(), "}", suggestions("", names)));
      return given;
    }
    std::vector<Config::Entry> entries;
    entries.push_back({"NAME", given.where("NAME"), Config::scalar(name->text(), name->where(), /*quoted=*/true)});
    std::string pinned;
    if (given.has("PLUGIN")) {
      const Config& plugin = *given.find("PLUGIN");
      const std::string problem = read(plugin, pinned);
      if (!problem.empty()) {
        report(plugin.where(), cat("PLUGIN ", problem));
        return given;
      }
      pinned = absolute_path(pinned, plugin.where());
      entries.push_back({"PLUGIN", given.where("PLUGIN"), Config::scalar(pinned, plugin.where(), /*quoted=*/true)});
    }
    try {
      info = catalogue_.find(kind, name->text(), pinned, name->where());
    } catch (const ConfigError& error) {
      problems_.push_back(error);
      return given;
    }
    if (!info) {
      std::string message = cat("unknown ", kind, " ", quoted_for_message(name->text()),
                                suggestions(name->text(), catalogue_.names(kind)));
      const std::string hint = catalogue_.hint(kind, name->text());
      if (!hint.empty()) message += cat("\n", hint);
      report(name->where(), message);
      return given;
    }
    entries = values(given, info->parameters, cat(kind, " ", name->text()), path, std::move(entries));
    return Config::map(std::move(entries), given.where()).as_component(kind, name->text(), path);
  }

  // `entries` with every declared parameter after them. `owner`: "optimizer SGD".
  std::vector<Config::Entry> values(const Config& given, const Parameters& parameters, const std::string& owner,
                                    const std::string& path, std::vector<Config::Entry> entries) {
    const bool is_component = !entries.empty();
    const std::vector<std::string> known = names_of(parameters);
    std::vector<std::string> meant;  // what misspelt keys were to be: telling that it is missing helps nobody
    for (const Config::Entry& entry : given.entries()) {
      if (parameters.find(entry.key)) continue;
      if (is_component && (entry.key == "NAME" || entry.key == "PLUGIN")) continue;
      if (foreign(entry, parameters, owner)) continue;
      report(entry.where, cat("unknown key ", quoted_for_message(entry.key), " in ", owner,
                              known.empty() ? ", which has no parameters" : suggestions(entry.key, known)));
      const std::vector<std::string> near = near_matches(entry.key, known, 1);
      meant.insert(meant.end(), near.begin(), near.end());
    }
    for (const Parameter& parameter : parameters.all()) {
      if (parameter.required() && !given.has(parameter.name())) {
        if (std::find(meant.begin(), meant.end(), parameter.name()) != meant.end()) continue;
        std::string message = cat(owner, " needs ", parameter.name(), " (", expected_text(parameter), ")");
        if (!parameter.help().empty()) message += cat(": ", parameter.help());
        report(given.where(), message);
      } else {
        add_value(given, parameter, parameter.name(), path, entries);
      }
    }
    return entries;
  }

  /// Whether it is a key of SCEPTER's that is known to mean nothing here.
  bool foreign(const Config::Entry& entry, const Parameters& parameters, const std::string& owner) {
    for (const Parameters::Foreign& known : parameters.foreign_keys()) {
      if (known.name != entry.key) continue;
      const std::string value = plain_text(entry.value);
      const bool neutral = entry.value.is_null() ||
                           std::any_of(known.neutral.begin(), known.neutral.end(),
                                       [&](const std::string& text) { return text == "*" || same_text(text, value); });
      if (neutral)
        notes_.emplace_back(entry.where, cat(entry.key, " in ", owner, " has no effect: ", known.instead));
      else
        report(entry.where, cat(entry.key, " in ", owner, " cannot be ", entry.value.describe(), ": ", known.instead));
      return true;
    }
    return false;
  }

  /// "x" of a scalar, "[a, b]" of a list of them.
  static std::string plain_text(const Config& value) {
    if (value.type() != Config::Type::list) return value.text();
    std::vector<std::string> items;
    for (const Config& item : value.items()) items.push_back(item.text());
    return cat("[", join(items, ", "), "]");
  }

  static bool same_text(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
  }

  void add_value(const Config& given, const Parameter& parameter, const std::string& key, const std::string& path,
                 std::vector<Config::Entry>& entries) {
    const bool is_given = given.has(key);
    const SourceLocation& place = given.where(key);
    const Config value = is_given ? *given.find(key) : relocated(parameter.default_value(), place);
    const std::string inner_path = path.empty() ? key : cat(path, ".", key);
    Config resolved = value;
    if (value.is_null()) {
      // absent
    } else if (parameter.type() == ValueType::component) {
      const ComponentInfo* ignored = nullptr;
      resolved = component(value, parameter.kind(), key, inner_path, ignored);
    } else if (parameter.type() == ValueType::components) {
      resolved = components(value, parameter, inner_path);
    } else if (parameter.type() == ValueType::section) {
      resolved = section(value, parameter, key, inner_path);
    } else if (parameter.type() == ValueType::sections) {
      resolved = sections(value, parameter, inner_path);
    } else {
      const std::size_t before = problems_.size();
      parameter.check(value, problems_);
      if (problems_.size() == before) resolved = canonical(value, parameter);
    }
    entries.push_back({key, place, std::move(resolved)});
  }

  Config section(const Config& value, const Parameter& parameter, const std::string& key, const std::string& path) {
    if (value.type() != Config::Type::map) {
      report(value.where(), cat(key, " must be a map with the keys ", join(names_of(*parameter.keys()), ", "), ", got ",
                                value.describe()));
      return value;
    }
    return Config::map(values(value, *parameter.keys(), key, path, {}), value.where());
  }

  Config sections(const Config& value, const Parameter& parameter, const std::string& path) {
    std::vector<Config> items;
    for (const Config& item : as_list(value)) {
      const std::string index = cat("[", items.size(), "]");
      items.push_back(section(item, parameter, parameter.name() + index, path + index));
    }
    if (items.empty()) parameter.check(value, problems_);
    return Config::list(std::move(items), value.where());
  }

  /// One map stands for a list of one.
  static std::vector<Config> as_list(const Config& value) {
    return value.type() == Config::Type::list ? value.items() : std::vector<Config>{value};
  }

  Config components(const Config& value, const Parameter& parameter, const std::string& path) {
    if (value.type() == Config::Type::scalar) {
      report(value.where(), cat(parameter.name(), " must be a list, got ", value.describe(), ": write ",
                                parameter.name(), ":\n    - {NAME: ...}"));
      return value;
    }
    std::vector<Config> items;
    for (const Config& item : as_list(value)) {
      const std::string index = cat("[", items.size(), "]");
      const ComponentInfo* info = nullptr;
      items.push_back(component(item, parameter.kind(), parameter.name() + index, path + index, info));
      if (parameter.kind() == "hook" && path == cat("SOLVER.", parameter.name())) {
        hooks_.push_back({info, parameter.name(), item.where(), items.back()});
      }
    }
    if (items.empty()) parameter.check(value, problems_);
    return Config::list(std::move(items), value.where());
  }

  static std::string absolute_path(const std::string& path, const SourceLocation& named_at) {
    namespace fs = std::filesystem;
    const fs::path folder = named_at.line > 0 ? fs::path(named_at.file).parent_path() : fs::path();
    return fs::absolute(folder / path).lexically_normal().string();
  }

  void report(const SourceLocation& where, const std::string& message) { problems_.emplace_back(where, message); }

  Catalogue& catalogue_;
  std::vector<ConfigError>& problems_;
  std::vector<ConfigError>& notes_;
  std::vector<HookUse> hooks_;
};

}  // namespace

Config resolve(const Config& composed, Catalogue& catalogue, std::vector<ConfigError>& problems,
               std::vector<ConfigError>* notes) {
  std::vector<ConfigError> unread;
  const Config resolved = Resolver(catalogue, problems, notes != nullptr ? *notes : unread).top(composed);
  sort_problems(problems);
  return resolved;
}

Parameters env_parameters() {
  Parameters p;
  p.add<int64_t>("SEED", 2023).at_least(0).help("Every random number of the run is derived from it.");
  p.add<int64_t>("NUM_THREADS", 0)
      .at_least(0)
      .help(
          "Threads that compute on the CPU; 0: as many as LibTorch chooses. Sums round differently with another "
          "number.");
  p.add<std::string>("DEVICE", "auto").not_empty().help("auto, cpu, cuda, or cuda:N. auto: a GPU if there is one.");
  p.add<bool>("DETERMINISTIC", false)
      .help("Only algorithms that give the same bits each time; an operation that has none is an error.");
  p.add<std::string>("BACKEND", "auto")
      .choices({"auto", "nccl", "gloo"})
      .no_effect_on_result()
      .help("What several processes communicate with. auto: nccl on GPUs, else gloo.");
  p.add<std::vector<std::string>>("SIGNALS", {"INT", "TERM", "HUP", "USR1", "USR2"})
      .choices({"INT", "TERM", "HUP", "USR1", "USR2", "SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"})
      .no_effect_on_result()
      .help(
          "Signals that save a checkpoint and pause the run, where there is a CheckpointHook. Others, and all with [], "
          "do what they do in any program.");
  p.add<Interval>("MAX_RUN_TIME", Interval{0, Interval::Unit::seconds})
      .unit("seconds")
      .at_least(0)
      .at_most(1e9)
      .no_effect_on_result()
      .help(
          "A training run pauses early enough to have saved a checkpoint before this time since the program's start, "
          "such as 90 s, 30 min or 4 h: before a scheduler would end it. 0: no limit.");
  p.foreign("SYNC_BN", {"false"}, "batch normalisation works per process");
  p.foreign("CUDNN_DETERMINISTIC", {"true"}, "write DETERMINISTIC, which holds for every operator");
  p.foreign("CUDNN_BENCHMARK", {"false"}, "it would make runs differ");
  p.foreign("USE_PL", {"false"}, "there is one loop, Gantry's own");
  p.foreign("SPAWN_JOIN", {"true", "false"}, "processes are started by torchrun, not by the program");
  p.foreign("SYS_ENVS", {}, "set environment variables where you start the program");
  p.foreign("TENSOR_PARALLEL_SIZE", {"1"}, "a model is on one device");
  p.foreign("PIPELINE_PARALLEL_SIZE", {"1"}, "a model is on one device");
  return p;
}

}  // namespace gantry
