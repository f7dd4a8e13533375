#include "config_override.h"

#include <string_view>
#include <utility>
#include <vector>

#include "config_merge.h"
#include "flow_value.h"
#include "gantry/text.h"
#include "message.h"

namespace gantry {
namespace {

using Path = std::vector<KeySelectors>;

// Dots inside of brackets belong to a NAME.
Path parse_path(std::string_view text, const SourceLocation& where) {
  Path path;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != '.' || depth > 0)) continue;
    const std::optional<KeySelectors> parts = split_selectors(text.substr(begin, i - begin));
    if (!parts || parts->key.empty()) {
      throw ConfigError(where, cat("the path ", quoted_for_message(text),
                                   " is malformed: write KEY.KEY=VALUE, or KEY[NAME].KEY=VALUE for a list's item"));
    }
    path.push_back(*parts);
    begin = i + 1;
  }
  return path;
}

class Setter {
 public:
  Setter(const Path& path, Config value, const SourceLocation& where)
      : path_(path), value_(std::move(value)), where_(where) {}

  Config in_map(const Config& map, std::size_t at, const std::string& map_name) const {
    if (at == path_.size()) return value_;
    if (map.type() == Config::Type::list) {
      fail(map, map_name, cat("a list: write ", map_name, "[0] or ", map_name, "[NAME] for one of its items"));
    }
    if (map.type() == Config::Type::scalar) {
      fail(map, map_name, cat(map.describe(), ", which has no key ", path_[at].key));
    }
    const KeySelectors& part = path_[at];
    const Config* child = map.find(part.key);
    const std::string name = map_name.empty() ? part.key : cat(map_name, ".", part.key);
    Config updated = in_item(child ? *child : Config::null(where_), at, 0, name);
    const Config base = map.is_null() ? Config::map({}, where_) : map;
    // The key keeps its place in the file unless the whole value is new.
    if (child && updated.where().line > 0) {
      std::vector<Config::Entry> entries = base.entries();
      for (Config::Entry& entry : entries) {
        if (entry.key == part.key) entry.value = updated;
      }
      return Config::map(std::move(entries), base.where());
    }
    return base.with(part.key, std::move(updated));
  }

 private:
  Config in_item(const Config& list, std::size_t at, std::size_t selector, const std::string& name) const {
    if (selector == path_[at].selectors.size()) return in_map(list, at + 1, name);
    if (list.type() != Config::Type::list) {
      fail(list, name, cat(list.describe(), ", not a list, so that it has no item ", path_[at].selectors[selector]));
    }
    const std::string& which = path_[at].selectors[selector];
    const std::size_t i = find_item(list, name, which, where_);
    std::vector<Config> items = list.items();
    items[i] = in_item(items[i], at, selector + 1, cat(name, "[", which, "]"));
    return Config::list(std::move(items), list.where());
  }

  [[noreturn]] void fail(const Config& what, const std::string& name, const std::string& is) const {
    const std::string place = what.where().line > 0 ? cat(" (", what.where().str(), ")") : "";
    throw ConfigError(where_, cat(name, place, " is ", is));
  }

  const Path& path_;
  const Config value_;
  const SourceLocation& where_;
};

}  // namespace

Config apply_override(const Config& config, const std::string& text) {
  const SourceLocation where{cat("command line ", quoted_for_message(text)), 0, 0};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw ConfigError(where, "an override is KEY=VALUE, such as SOLVER.MAX_EPOCHS=3; this has no '='");
  }
  const Path path = parse_path(std::string_view(text).substr(0, equals), where);
  const Config value = parse_flow_value(std::string_view(text).substr(equals + 1), where);
  return Setter(path, value, where).in_map(config, 0, "");
}

}  // namespace gantry
