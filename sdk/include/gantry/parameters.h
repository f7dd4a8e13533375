#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/kinds.h"

namespace gantry {

enum class ValueType {
  boolean,
  integer,
  number,
  string,
  interval,
  integers,
  numbers,
  strings,  ///< lists; one scalar is taken as a list of one
  component,
  components,  ///< `{NAME: X, ...}`, a list of them
  section,
  sections  ///< a map with declared keys, a list of them
};
GANTRY_API const char* value_type_text(ValueType type);  ///< "an integer", "a list of numbers", ...

class Parameters;

/// One declared parameter. Built by Parameters::add and friends, then refined by chaining:
///   p.add<int64_t>("INTERVAL", 100).unit("steps").at_least(1).help("Steps between two values.");
class GANTRY_API Parameter final {
 public:
  Parameter(std::string name, ValueType type);

  Parameter& unit(std::string text);  ///< shown in help; for intervals: iterations|steps|epochs|seconds|loop
  Parameter& at_least(double bound);
  Parameter& at_most(double bound);
  Parameter& above(double bound);  ///< strictly greater; bounds hold for each item of a list
  Parameter& below(double bound);
  Parameter& choices(std::vector<std::string> allowed);
  Parameter& help(std::string text);  ///< one or two sentences
  Parameter& not_empty();             ///< a list needs at least one item, a string one character
  /// The value cannot change what is computed (log intervals, paths, worker counts): left out of the
  /// digest that decides whether two configurations train the same.
  Parameter& no_effect_on_result();

  const std::string& name() const { return name_; }
  ValueType type() const { return type_; }
  const std::string& unit() const { return unit_; }
  const std::string& help() const { return help_; }
  const std::string& kind() const { return kind_; }       ///< of a component or list of components
  const Parameters* keys() const { return keys_.get(); }  ///< of a section or list of sections; else null
  const std::vector<std::string>& choices() const { return choices_; }
  bool required() const { return required_; }
  bool affects_result() const { return affects_result_; }
  const Config& default_value() const { return default_; }  ///< null: none
  std::string range_text() const;                           ///< ">= 1, < 10", or empty
  /// Appends one message for each way in which `value` (not null) breaks this declaration.
  void check(const Config& value, std::vector<ConfigError>& problems) const;

 private:
  friend class Parameters;
  std::string name_, unit_, help_, kind_;
  ValueType type_;
  Config default_;
  std::shared_ptr<const Parameters> keys_;
  bool required_ = false, affects_result_ = true, not_empty_ = false;
  std::optional<double> min_, max_;
  bool min_open_ = false, max_open_ = false;
  std::vector<std::string> choices_;
};

namespace detail {
template <class T>
struct TypeOf;
template <>
struct TypeOf<bool> {
  static constexpr ValueType value = ValueType::boolean;
};
template <>
struct TypeOf<int64_t> {
  static constexpr ValueType value = ValueType::integer;
};
template <>
struct TypeOf<double> {
  static constexpr ValueType value = ValueType::number;
};
template <>
struct TypeOf<std::string> {
  static constexpr ValueType value = ValueType::string;
};
template <>
struct TypeOf<Interval> {
  static constexpr ValueType value = ValueType::interval;
};
template <>
struct TypeOf<std::vector<int64_t>> {
  static constexpr ValueType value = ValueType::integers;
};
template <>
struct TypeOf<std::vector<double>> {
  static constexpr ValueType value = ValueType::numbers;
};
template <>
struct TypeOf<std::vector<std::string>> {
  static constexpr ValueType value = ValueType::strings;
};
GANTRY_API Config default_config(bool value);
GANTRY_API Config default_config(int64_t value);
GANTRY_API Config default_config(double value);
GANTRY_API Config default_config(const std::string& value);
GANTRY_API Config default_config(const Interval& value);
GANTRY_API Config default_config(const std::vector<int64_t>& value);
GANTRY_API Config default_config(const std::vector<double>& value);
GANTRY_API Config default_config(const std::vector<std::string>& value);
}  // namespace detail

/// What a component reads from its configuration. A component class has
///   static void declare(gantry::Parameters& p);
/// which is called before, and independently of, any construction. From the declarations come checked
/// values, errors for unknown keys, `gantry describe`, and the catalogue. NAME and PLUGIN belong to every
/// component and are not declared.
class GANTRY_API Parameters final {
 public:
  /// A required parameter.
  template <class T>
  Parameter& add(std::string_view name) {
    return insert(name, detail::TypeOf<T>::value, Config(), true);
  }
  /// A parameter with a default. Declaring a name again replaces the earlier declaration, so a class can
  /// change its base's default.
  template <class T>
  Parameter& add(std::string_view name, const T& default_value) {
    return insert(name, detail::TypeOf<T>::value, detail::default_config(default_value), false);
  }
  /// A parameter that may be absent: ask `config.has(name)`.
  template <class T>
  Parameter& optional(std::string_view name) {
    return insert(name, detail::TypeOf<T>::value, Config(), false);
  }
  /// A nested component of the kind of `Interface`: required; or optional; or by default of this NAME.
  template <class Interface>
  Parameter& component(std::string_view name) {
    return insert_component(name, ValueType::component, KindOf<Interface>::name, Config(), true);
  }
  template <class Interface>
  Parameter& optional_component(std::string_view name) {
    return insert_component(name, ValueType::component, KindOf<Interface>::name, Config(), false);
  }
  template <class Interface>
  Parameter& component_or(std::string_view name, std::string_view default_component) {
    return insert_component(name, ValueType::component, KindOf<Interface>::name, component_named(default_component),
                            false);
  }
  /// A list of components, empty by default.
  template <class Interface>
  Parameter& components(std::string_view name) {
    return insert_component(name, ValueType::components, KindOf<Interface>::name, Config::list({}, {}), false);
  }

  /// A map with keys of its own, absent by default; a list of such maps, empty by default. Read them as Config and
  /// std::vector<Config>: their keys are checked and filled in as a component's are.
  Parameter& section(std::string_view name, Parameters keys);
  Parameter& sections(std::string_view name, Parameters keys);

  /// A key of SCEPTER's that does nothing here. At one of the `neutral` values (as written in YAML: "false", "[model]";
  /// "*" is any) it is accepted with a note; another value is an error. Both say `instead`: what holds, what to do.
  void foreign(std::string_view name, std::vector<std::string> neutral, std::string_view instead);

  /// Hooks: the default of PRIORITY. Hooks run in ascending order, ties in the file's order.
  void priority(int64_t default_priority);
  /// The component's presence changes nothing that is computed (logs, recorders, checkpoints).
  void neutral() { neutral_ = true; }
  /// Naming it twice in one solver is an error.
  void single_instance() { single_instance_ = true; }
  /// It runs the backward pass: a training run with an OPTIMIZER needs exactly one such hook.
  void triggers_backward() { triggers_backward_ = true; }

  struct Foreign {
    std::string name;
    std::vector<std::string> neutral;
    std::string instead;
  };

  const std::deque<Parameter>& all() const { return all_; }
  const std::vector<Foreign>& foreign_keys() const { return foreign_; }
  const Parameter* find(std::string_view name) const;
  bool is_neutral() const { return neutral_; }
  bool is_single_instance() const { return single_instance_; }
  bool does_trigger_backward() const { return triggers_backward_; }

 private:
  Parameter& insert(std::string_view name, ValueType type, Config default_value, bool required);
  Parameter& insert_component(std::string_view name, ValueType type, const char* kind, Config default_value,
                              bool required);
  static Config component_named(std::string_view name);

  std::vector<Foreign> foreign_;
  std::deque<Parameter> all_;  // a deque: references handed out by add() stay valid
  bool neutral_ = false, single_instance_ = false, triggers_backward_ = false;
};

}  // namespace gantry
