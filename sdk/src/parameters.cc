#include "gantry/parameters.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "config_read.h"
#include "gantry/text.h"
#include "message.h"
#include "parameter_unit.h"

namespace gantry {
namespace {

bool is_list(ValueType type) {
  return type == ValueType::integers || type == ValueType::numbers || type == ValueType::strings;
}

struct Bounds {
  std::optional<double> min, max;
  bool min_open = false, max_open = false;

  std::string text() const {
    std::vector<std::string> parts;
    if (min) parts.push_back(cat(min_open ? "> " : ">= ", plain_number(*min)));
    if (max) parts.push_back(cat(max_open ? "< " : "<= ", plain_number(*max)));
    return join(parts, ", ");
  }
  // Written so that nan, which compares to nothing, is outside of every bound.
  bool hold(double value) const {
    const bool above = !min || (min_open ? value > *min : value >= *min);
    const bool below = !max || (max_open ? value < *max : value <= *max);
    return above && below;
  }
};

template <class T>
Config default_list(const std::vector<T>& values) {
  std::vector<Config> items;
  for (const T& value : values) items.push_back(detail::default_config(value));
  return Config::list(std::move(items), {});
}

}  // namespace

const char* value_type_text(ValueType type) {
  switch (type) {
    case ValueType::boolean:
      return "true or false";
    case ValueType::integer:
      return "an integer";
    case ValueType::number:
      return "a number";
    case ValueType::string:
      return "a string";
    case ValueType::interval:
      return "an interval";
    case ValueType::integers:
      return "a list of integers";
    case ValueType::numbers:
      return "a list of numbers";
    case ValueType::strings:
      return "a list of strings";
    case ValueType::component:
      return "a component";
    case ValueType::components:
      return "a list of components";
    case ValueType::section:
      return "a map of keys";
    case ValueType::sections:
      return "a list of maps of keys";
  }
  return "";
}

Interval::Unit bare_unit(const Parameter& parameter) {
  for (const auto unit : {Interval::Unit::iterations, Interval::Unit::steps, Interval::Unit::epochs,
                          Interval::Unit::seconds, Interval::Unit::loop}) {
    if (parameter.unit() == unit_text(unit)) return unit;
  }
  return Interval::Unit::iterations;
}

Parameter::Parameter(std::string name, ValueType type) : name_(std::move(name)), type_(type) {}

Parameter& Parameter::unit(std::string text) {
  unit_ = std::move(text);
  if (type_ == ValueType::interval && unit_ != unit_text(bare_unit(*this))) {
    throw std::logic_error(
        cat("the interval ", name_, " has the unit '", unit_, "': use iterations, steps, epochs, seconds or loop"));
  }
  return *this;
}

Parameter& Parameter::at_least(double bound) {
  min_ = bound;
  min_open_ = false;
  return *this;
}

Parameter& Parameter::at_most(double bound) {
  max_ = bound;
  max_open_ = false;
  return *this;
}

Parameter& Parameter::above(double bound) {
  min_ = bound;
  min_open_ = true;
  return *this;
}

Parameter& Parameter::below(double bound) {
  max_ = bound;
  max_open_ = true;
  return *this;
}

Parameter& Parameter::choices(std::vector<std::string> allowed) {
  choices_ = std::move(allowed);
  return *this;
}

Parameter& Parameter::help(std::string text) {
  help_ = std::move(text);
  return *this;
}

Parameter& Parameter::not_empty() {
  not_empty_ = true;
  return *this;
}

Parameter& Parameter::no_effect_on_result() {
  affects_result_ = false;
  return *this;
}

std::string Parameter::range_text() const { return Bounds{min_, max_, min_open_, max_open_}.text(); }

void Parameter::check(const Config& value, std::vector<ConfigError>& problems) const {
  const Bounds bounds{min_, max_, min_open_, max_open_};
  const auto report = [&](const Config& at, const std::string& subject, const std::string& problem) {
    problems.emplace_back(at.where(), cat(subject, " ", problem));
  };
  const auto check_number = [&](const Config& at, const std::string& subject, double number) {
    if (!bounds.hold(number)) report(at, subject, cat("must be ", bounds.text(), ", got ", at.text()));
  };
  const auto check_scalar = [&](const Config& at, const std::string& subject) {
    std::string problem;
    switch (type_) {
      case ValueType::boolean: {
        bool ignored;
        problem = read(at, ignored);
        break;
      }
      case ValueType::integer:
      case ValueType::integers: {
        int64_t number = 0;
        problem = read(at, number);
        if (problem.empty()) check_number(at, subject, static_cast<double>(number));
        break;
      }
      case ValueType::number:
      case ValueType::numbers: {
        double number = 0;
        problem = read(at, number);
        if (problem.empty()) check_number(at, subject, number);
        break;
      }
      case ValueType::interval: {
        Interval interval;
        problem = read(at, interval, bare_unit(*this));
        if (!problem.empty()) break;
        if (interval.unit == Interval::Unit::seconds && affects_result_) {
          problem = cat("must not be a time, got ", at.text(),
                        ": it changes the result, which must not depend on the machine's speed; "
                        "use iters, steps or epochs");
          break;
        }
        check_number(at, subject, interval.count);
        break;
      }
      case ValueType::string:
      case ValueType::strings: {
        std::string text;
        problem = read(at, text);
        if (problem.empty() && not_empty_ && text.empty()) problem = "must not be empty";
        break;
      }
      case ValueType::component:
      case ValueType::components:
      case ValueType::section:
      case ValueType::sections:
        break;
    }
    if (problem.empty() && !choices_.empty() &&
        std::find(choices_.begin(), choices_.end(), at.text()) == choices_.end()) {
      problem = cat("must be one of ", join(choices_, ", "), ", got ", at.describe());
      const std::vector<std::string> near = near_matches(at.text(), choices_, 1);
      if (!near.empty()) problem += cat("; did you mean '", near[0], "'?");
    }
    if (!problem.empty()) report(at, subject, problem);
  };

  if (type_ == ValueType::components || type_ == ValueType::sections) {
    if (not_empty_ && value.items().empty()) report(value, name_, "must have at least one item");
  } else if (!is_list(type_)) {
    check_scalar(value, name_);
  } else if (value.type() == Config::Type::list) {
    if (not_empty_ && value.items().empty()) report(value, name_, "must have at least one item");
    for (std::size_t i = 0; i < value.items().size(); ++i) {
      check_scalar(value.items()[i], cat(name_, "[", i, "]"));
    }
  } else if (value.type() == Config::Type::map) {
    report(value, name_, cat("must be ", value_type_text(type_), ", got a map"));
  } else {
    check_scalar(value, name_);
  }
}

namespace detail {

Config default_config(bool value) { return Config::scalar(value ? "true" : "false", {}); }
Config default_config(int64_t value) { return Config::scalar(std::to_string(value), {}); }
Config default_config(double value) { return Config::scalar(number_text(value), {}); }
Config default_config(const std::string& value) { return Config::scalar(value, {}, /*quoted=*/true); }
Config default_config(const Interval& value) { return Config::scalar(interval_text(value), {}); }
Config default_config(const std::vector<int64_t>& value) { return default_list(value); }
Config default_config(const std::vector<double>& value) { return default_list(value); }
Config default_config(const std::vector<std::string>& value) { return default_list(value); }

}  // namespace detail

void Parameters::priority(int64_t default_priority) {
  add<int64_t>("PRIORITY", default_priority)
      .help("Hooks run in ascending order of PRIORITY at each point, ties in the file's order.");
}

const Parameter* Parameters::find(std::string_view name) const {
  for (const Parameter& parameter : all_) {
    if (parameter.name() == name) return &parameter;
  }
  return nullptr;
}

Parameter& Parameters::insert(std::string_view name, ValueType type, Config default_value, bool required) {
  Parameter parameter{std::string(name), type};
  parameter.default_ = std::move(default_value);
  parameter.required_ = required;
  for (Parameter& declared : all_) {
    if (declared.name() == name) return declared = std::move(parameter);
  }
  all_.push_back(std::move(parameter));
  return all_.back();
}

Parameter& Parameters::insert_component(std::string_view name, ValueType type, const char* kind, Config default_value,
                                        bool required) {
  Parameter& parameter = insert(name, type, std::move(default_value), required);
  parameter.kind_ = kind;
  return parameter;
}

Parameter& Parameters::section(std::string_view name, Parameters keys) {
  Parameter& parameter = insert(name, ValueType::section, Config(), false);
  parameter.keys_ = std::make_shared<const Parameters>(std::move(keys));
  return parameter;
}

Parameter& Parameters::sections(std::string_view name, Parameters keys) {
  Parameter& parameter = insert(name, ValueType::sections, Config::list({}, {}), false);
  parameter.keys_ = std::make_shared<const Parameters>(std::move(keys));
  return parameter;
}

void Parameters::foreign(std::string_view name, std::vector<std::string> neutral, std::string_view instead) {
  foreign_.push_back({std::string(name), std::move(neutral), std::string(instead)});
}

Config Parameters::component_named(std::string_view name) {
  return Config::map({{"NAME", {}, Config::scalar(std::string(name), {}, /*quoted=*/true)}}, {});
}

}  // namespace gantry
