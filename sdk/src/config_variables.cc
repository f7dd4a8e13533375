#include "config_variables.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "config_read.h"
#include "gantry/text.h"
#include "message.h"

namespace gantry {
namespace {

using Variable = std::function<std::optional<std::string>(const std::string&)>;

bool valid_variable(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  });
}

// The inside of ${...}.
std::string value_of(std::string_view inside, const SourceLocation& where, const Variable& variable) {
  const std::size_t separator = inside.find(":-");
  const std::string name(inside.substr(0, separator));
  if (!valid_variable(name)) {
    throw ConfigError(where, cat("${", inside, "} names no variable; for a literal ${ write $${"));
  }
  const std::optional<std::string> value = variable(name);
  if (separator == std::string_view::npos) {
    if (value) return *value;
    throw ConfigError(where, cat("the environment variable ", name, " is not set: export ", name,
                                 "=..., or give a default with ${", name, ":-default}"));
  }
  return value && !value->empty() ? *value : std::string(inside.substr(separator + 2));
}

std::string substitute(std::string_view text, const SourceLocation& where, const Variable& variable) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    if (text.substr(i, 3) == "$${") {
      out += "${";
      i += 3;
    } else if (text.substr(i, 2) == "${") {
      const std::size_t close = text.find('}', i);
      if (close == std::string_view::npos) {
        throw ConfigError(where,
                          cat("${ has no closing } in ", quoted_for_message(text), "; for a literal ${ write $${"));
      }
      out += value_of(text.substr(i + 2, close - i - 2), where, variable);
      i = close + 1;
    } else {
      out += text[i++];
    }
  }
  return out;
}

}  // namespace

Config substitute_variables(const Config& config, const Variable& variable, std::vector<ConfigError>& problems) {
  switch (config.type()) {
    case Config::Type::null:
      return config;
    case Config::Type::scalar: {
      if (config.text().find("${") == std::string::npos) return config;
      try {
        std::string text = substitute(config.text(), config.where(), variable);
        if (!config.quoted() && looks_like_null(text)) return Config::null(config.where());
        return Config::scalar(std::move(text), config.where(), config.quoted());
      } catch (const ConfigError& error) {
        problems.push_back(error);
        return config;
      }
    }
    case Config::Type::list: {
      std::vector<Config> items;
      for (const Config& item : config.items()) items.push_back(substitute_variables(item, variable, problems));
      return Config::list(std::move(items), config.where());
    }
    case Config::Type::map: {
      std::vector<Config::Entry> entries;
      for (const Config::Entry& entry : config.entries()) {
        entries.push_back({entry.key, entry.where, substitute_variables(entry.value, variable, problems)});
      }
      return Config::map(std::move(entries), config.where());
    }
  }
  return config;
}

}  // namespace gantry
