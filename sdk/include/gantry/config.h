#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/error.h"
#include "gantry/export.h"

namespace gantry {

/// How often something happens: a count and its unit. A bare number in YAML has the unit declared with
/// its key; "500 iters", "500 steps", "2 epochs", "90 s", "5 min", "1 h" name theirs.
struct Interval {
  /// `loop`, for a bare number alone: epochs where MAX_EPOCHS limits the run, iterations where MAX_STEPS does.
  enum class Unit { iterations, steps, epochs, seconds, loop };
  double count = 0;
  Unit unit = Unit::iterations;

  /// Counts of zero and below switch a thing off.
  bool off() const { return count <= 0; }
};

/// A value of a configuration: null, a scalar, a list or a map, each knowing its place in the file.
/// Immutable; copies share. Any thread may read.
///
/// What a component's constructor receives is *resolved*: every parameter that it declared is present
/// (parameters.h), checked and with its default filled in. `get` of a key that was not declared is a
/// defect of the plugin and throws std::logic_error.
class GANTRY_API Config final {
 public:
  enum class Type { null, scalar, list, map };
  struct Entry;

  Config();  ///< null, of no place
  static Config null(SourceLocation where);
  /// `quoted`: the text stood in quotes, so it is a string whatever it looks like.
  static Config scalar(std::string text, SourceLocation where, bool quoted = false);
  static Config list(std::vector<Config> items, SourceLocation where);
  /// Keys must be unique.
  static Config map(std::vector<Entry> entries, SourceLocation where);

  Type type() const;
  bool is_null() const { return type() == Type::null; }
  const SourceLocation& where() const;
  /// "a map", "a list", "the text 'abc'", "the number 3": for messages.
  std::string describe() const;
  /// How many values this one holds in all, itself included, aliases counted at every use.
  int64_t total_size() const;

  const std::string& text() const;  ///< of a scalar, else empty
  bool quoted() const;
  const std::vector<Config>& items() const;        ///< of a list, else empty
  const std::vector<Entry>& entries() const;       ///< of a map, in the file's order, else empty
  const Config* find(std::string_view key) const;  ///< of a map; nullptr when absent

  /// A copy with this key set, at its old position or at the end.
  Config with(std::string_view key, Config value) const;
  Config without(std::string_view key) const;

  // --- what a component's constructor calls ---

  /// The value of a declared parameter. T is the type it was declared with: bool, int64_t, double,
  /// std::string, Interval, a std::vector of int64_t, double or std::string, Config for a nested
  /// component, std::vector<Config> for a list of them.
  template <class T>
  T get(std::string_view key) const;
  /// Whether an optional parameter was given (an explicit null counts as not given).
  bool has(std::string_view key) const;
  /// The place of a key, or of this map where the key is absent.
  const SourceLocation& where(std::string_view key) const;
  /// To throw: names the place and the key. `throw config.error("GAMMA", "must differ from BETA");`
  ConfigError error(std::string_view key, const std::string& message) const;

  /// Of a resolved component: its kind ("hook"), NAME, and the path in the configuration
  /// ("SOLVER.TRAIN_HOOKS[1]"). Empty otherwise.
  const std::string& kind() const;
  const std::string& name() const;
  const std::string& path() const;
  Config as_component(std::string kind, std::string name, std::string path) const;

  /// This scalar or list as T, by the rules of the configuration language; throws ConfigError that says
  /// what was expected. `1e-4`, `1E5` are numbers; true/false (any case), yes/no, on/off are booleans.
  template <class T>
  T as() const;

  /// The configuration as YAML text that reads back equal. Comments and places are not kept.
  std::string yaml() const;

 private:
  struct Node;
  explicit Config(std::shared_ptr<const Node> node);
  std::shared_ptr<const Node> node_;
};

struct Config::Entry {
  std::string key;
  SourceLocation where;
  Config value;
};

extern template GANTRY_API bool Config::as<bool>() const;
extern template GANTRY_API int64_t Config::as<int64_t>() const;
extern template GANTRY_API double Config::as<double>() const;
extern template GANTRY_API std::string Config::as<std::string>() const;
extern template GANTRY_API Interval Config::as<Interval>() const;
extern template GANTRY_API Config Config::as<Config>() const;
extern template GANTRY_API std::vector<int64_t> Config::as<std::vector<int64_t>>() const;
extern template GANTRY_API std::vector<double> Config::as<std::vector<double>>() const;
extern template GANTRY_API std::vector<std::string> Config::as<std::vector<std::string>>() const;
extern template GANTRY_API std::vector<Config> Config::as<std::vector<Config>>() const;

extern template GANTRY_API bool Config::get<bool>(std::string_view) const;
extern template GANTRY_API int64_t Config::get<int64_t>(std::string_view) const;
extern template GANTRY_API double Config::get<double>(std::string_view) const;
extern template GANTRY_API std::string Config::get<std::string>(std::string_view) const;
extern template GANTRY_API Interval Config::get<Interval>(std::string_view) const;
extern template GANTRY_API Config Config::get<Config>(std::string_view) const;
extern template GANTRY_API std::vector<int64_t> Config::get<std::vector<int64_t>>(std::string_view) const;
extern template GANTRY_API std::vector<double> Config::get<std::vector<double>>(std::string_view) const;
extern template GANTRY_API std::vector<std::string> Config::get<std::vector<std::string>>(std::string_view) const;
extern template GANTRY_API std::vector<Config> Config::get<std::vector<Config>>(std::string_view) const;

}  // namespace gantry
