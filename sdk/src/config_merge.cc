#include "config_merge.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "gantry/text.h"
#include "message.h"

namespace gantry {
namespace {

const std::string& name_of(const Config& component) {
  static const std::string none;
  const Config* name = component.find("NAME");
  return name ? name->text() : none;
}

bool renames(const Config& earlier, const Config& later) {
  return later.find("NAME") && earlier.find("NAME") && name_of(later) != name_of(earlier);
}

class MapMerge {
 public:
  MapMerge(const Config& earlier, std::vector<ConfigError>& problems)
      : entries_(earlier.entries()), problems_(problems) {
    for (std::size_t i = 0; i < entries_.size(); ++i) index_[entries_[i].key] = i;
  }

  void add(const Config::Entry& entry) {
    const std::optional<KeySelectors> parts = split_selectors(entry.key);
    if (!parts) {
      problems_.emplace_back(entry.where, cat("the key ", quoted_for_message(entry.key), " has unmatched brackets"));
    } else if (!parts->selectors.empty()) {
      merge_into_item(entry, *parts);
    } else if (entry.key.size() > 1 && entry.key[0] == '+') {
      append(entry, entry.key.substr(1));
    } else {
      const Config* earlier = find(entry.key);
      set(entry.key, entry.where, merge(earlier ? *earlier : Config(), entry.value, problems_));
    }
  }

  Config result(const SourceLocation& where) && { return Config::map(std::move(entries_), where); }

 private:
  const Config* find(const std::string& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &entries_[found->second].value;
  }

  void set(const std::string& key, const SourceLocation& where, Config value) {
    const auto [found, inserted] = index_.emplace(key, entries_.size());
    if (inserted) {
      entries_.push_back({key, where, std::move(value)});
    } else {
      entries_[found->second] = {key, where, std::move(value)};
    }
  }

  void append(const Config::Entry& entry, const std::string& key) {
    const Config* earlier = find(key);
    if (entry.value.type() != Config::Type::list) {
      problems_.emplace_back(
          entry.where, cat(entry.key, " appends to a list and must be a list itself, got ", entry.value.describe()));
    } else if (earlier && !earlier->is_null() && earlier->type() != Config::Type::list) {
      problems_.emplace_back(entry.where, cat(entry.key, " appends to ", key, ", which is ", earlier->describe(), " (",
                                              earlier->where().str(), "), not a list"));
    } else {
      std::vector<Config> items = earlier ? earlier->items() : std::vector<Config>();
      items.insert(items.end(), entry.value.items().begin(), entry.value.items().end());
      set(key, entry.where, Config::list(std::move(items), entry.value.where()));
    }
  }

  void merge_into_item(const Config::Entry& entry, const KeySelectors& parts) {
    const Config* earlier = find(parts.key);
    if (parts.selectors.size() > 1 || !earlier || earlier->type() != Config::Type::list) {
      problems_.emplace_back(entry.where,
                             cat(entry.key, " merges into an item of the list ", parts.key,
                                 earlier ? cat(", but that is ", earlier->describe(), " (", earlier->where().str(), ")")
                                         : ", but none of the files before has that key"));
      return;
    }
    try {
      const std::size_t i = find_item(*earlier, parts.key, parts.selectors[0], entry.where);
      std::vector<Config> items = earlier->items();
      items[i] = merge(items[i], entry.value, problems_);
      set(parts.key, entry.where, Config::list(std::move(items), earlier->where()));
    } catch (const ConfigError& error) {
      problems_.push_back(error);
    }
  }

  std::vector<Config::Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<ConfigError>& problems_;
};

}  // namespace

Config merge(const Config& earlier, const Config& later, std::vector<ConfigError>& problems) {
  if (later.type() != Config::Type::map) return later;
  const bool inherits = earlier.type() == Config::Type::map && !renames(earlier, later);
  MapMerge merged(inherits ? earlier : Config(), problems);
  for (const Config::Entry& entry : later.entries()) merged.add(entry);
  return std::move(merged).result(later.where());
}

std::optional<KeySelectors> split_selectors(std::string_view text) {
  KeySelectors parts;
  std::size_t open = text.find('[');
  parts.key = std::string(text.substr(0, open));
  while (open != std::string_view::npos) {
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos || close == open + 1) return std::nullopt;
    parts.selectors.emplace_back(text.substr(open + 1, close - open - 1));
    if (close + 1 == text.size()) break;
    if (text[close + 1] != '[') return std::nullopt;
    open = close + 1;
  }
  return parts;
}

std::size_t find_item(const Config& list, std::string_view list_name, const std::string& selector,
                      const SourceLocation& where) {
  const std::vector<Config>& items = list.items();
  if (std::all_of(selector.begin(), selector.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    std::size_t index = items.size();
    std::from_chars(selector.data(), selector.data() + selector.size(), index);
    if (index < items.size()) return index;
    throw ConfigError(where, items.empty()
                                 ? cat(list_name, " has no items, so none is ", selector)
                                 : cat(list_name, " has no item ", selector, ", only 0 to ", items.size() - 1));
  }
  std::vector<std::string> names;
  std::vector<std::size_t> matches;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string& name = name_of(items[i]);
    if (name.empty()) continue;
    names.push_back(name);
    if (name == selector) matches.push_back(i);
  }
  if (matches.empty()) {
    throw ConfigError(
        where, cat(list_name, " has no item of the NAME ", quoted_for_message(selector), suggestions(selector, names)));
  }
  if (matches.size() > 1) {
    throw ConfigError(
        where, cat(list_name, " has ", matches.size(), " items of the NAME ", quoted_for_message(selector), ": write [",
                   matches[0], "] or [", matches[1], "] to say which"));
  }
  return matches[0];
}

}  // namespace gantry
