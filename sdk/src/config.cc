#include "gantry/config.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "config_read.h"
#include "gantry/text.h"
#include "message.h"

namespace gantry {

struct Config::Node {
  Type type = Type::null;
  SourceLocation where;
  std::string text;
  bool quoted = false;
  std::vector<Config> items;
  std::vector<Entry> entries;
  int64_t total = 1;
  std::string kind, name, path;
};

namespace {

// Saturates: nested aliases make a small file mean more values than can be counted.
int64_t sum(int64_t a, int64_t b) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return a > kMost - b ? kMost : a + b;
}

template <class T>
struct Reader {
  static T from(const Config& value, const std::string& subject) {
    T out{};
    const std::string problem = read(value, out);
    if (!problem.empty()) throw ConfigError(value.where(), cat(subject, " ", problem));
    return out;
  }
};

template <>
struct Reader<Config> {
  static Config from(const Config& value, const std::string&) { return value; }
};

template <class T>
struct Reader<std::vector<T>> {
  static std::vector<T> from(const Config& value, const std::string& subject) {
    std::vector<T> out;
    if (value.type() != Config::Type::list) {
      out.push_back(Reader<T>::from(value, subject));
      return out;
    }
    for (const Config& item : value.items()) {
      out.push_back(Reader<T>::from(item, cat(subject, "[", out.size(), "]")));
    }
    return out;
  }
};

}  // namespace

Config::Config() = default;
Config::Config(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

Config Config::null(SourceLocation where) {
  auto node = std::make_shared<Node>();
  node->where = std::move(where);
  return Config(std::move(node));
}

Config Config::scalar(std::string text, SourceLocation where, bool quoted) {
  auto node = std::make_shared<Node>();
  node->type = Type::scalar;
  node->where = std::move(where);
  node->text = std::move(text);
  node->quoted = quoted;
  return Config(std::move(node));
}

Config Config::list(std::vector<Config> items, SourceLocation where) {
  auto node = std::make_shared<Node>();
  node->type = Type::list;
  node->where = std::move(where);
  for (const Config& item : items) node->total = sum(node->total, item.total_size());
  node->items = std::move(items);
  return Config(std::move(node));
}

Config Config::map(std::vector<Entry> entries, SourceLocation where) {
  auto node = std::make_shared<Node>();
  node->type = Type::map;
  node->where = std::move(where);
  for (const Entry& entry : entries) node->total = sum(node->total, entry.value.total_size());
  node->entries = std::move(entries);
  return Config(std::move(node));
}

Config::Type Config::type() const { return node_ ? node_->type : Type::null; }

const SourceLocation& Config::where() const {
  static const SourceLocation nowhere;
  return node_ ? node_->where : nowhere;
}

std::string Config::describe() const {
  switch (type()) {
    case Type::null:
      return "nothing";
    case Type::list:
      return items().empty() ? "an empty list" : "a list";
    case Type::map:
      return "a map";
    case Type::scalar:
      break;
  }
  if (!quoted() && looks_like_number(text())) return cat("the number ", text());
  if (!quoted() && looks_like_boolean(text())) return text();
  return cat("the text ", quoted_for_message(text()));
}

int64_t Config::total_size() const { return node_ ? node_->total : 1; }

const std::string& Config::text() const {
  static const std::string none;
  return node_ ? node_->text : none;
}

bool Config::quoted() const { return node_ && node_->quoted; }

const std::vector<Config>& Config::items() const {
  static const std::vector<Config> none;
  return node_ ? node_->items : none;
}

const std::vector<Config::Entry>& Config::entries() const {
  static const std::vector<Entry> none;
  return node_ ? node_->entries : none;
}

const Config* Config::find(std::string_view key) const {
  for (const Entry& entry : entries()) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Config Config::with(std::string_view key, Config value) const {
  if (type() != Type::map && type() != Type::null) throw std::logic_error("Config::with: this is not a map");
  std::vector<Entry> entries = this->entries();
  const auto found =
      std::find_if(entries.begin(), entries.end(), [key](const Entry& entry) { return entry.key == key; });
  const SourceLocation place = value.where();
  if (found != entries.end()) {
    *found = {std::string(key), place, std::move(value)};
  } else {
    entries.push_back({std::string(key), place, std::move(value)});
  }
  return map(std::move(entries), where()).as_component(kind(), name(), path());
}

Config Config::without(std::string_view key) const {
  if (!find(key)) return *this;
  std::vector<Entry> entries = this->entries();
  std::erase_if(entries, [key](const Entry& entry) { return entry.key == key; });
  return map(std::move(entries), where()).as_component(kind(), name(), path());
}

template <class T>
T Config::get(std::string_view key) const {
  const Config* value = find(key);
  if (!value || value->is_null()) {
    const std::string who = name().empty() ? "a configuration" : cat(kind(), " ", name());
    throw std::logic_error(value ? cat(who, " reads ", key, ", which was not given: ask has() first")
                                 : cat(who, " reads ", key, ", which it did not declare"));
  }
  return Reader<T>::from(*value, std::string(key));
}

bool Config::has(std::string_view key) const {
  const Config* value = find(key);
  return value && !value->is_null();
}

const SourceLocation& Config::where(std::string_view key) const {
  for (const Entry& entry : entries()) {
    if (entry.key == key) return entry.where;
  }
  return where();
}

ConfigError Config::error(std::string_view key, const std::string& message) const {
  return ConfigError(where(key), message.starts_with(key) ? message : cat(key, " ", message));
}

const std::string& Config::kind() const {
  static const std::string none;
  return node_ ? node_->kind : none;
}

const std::string& Config::name() const {
  static const std::string none;
  return node_ ? node_->name : none;
}

const std::string& Config::path() const {
  static const std::string none;
  return node_ ? node_->path : none;
}

Config Config::as_component(std::string kind, std::string name, std::string path) const {
  auto node = node_ ? std::make_shared<Node>(*node_) : std::make_shared<Node>();
  node->kind = std::move(kind);
  node->name = std::move(name);
  node->path = std::move(path);
  return Config(std::move(node));
}

template <class T>
T Config::as() const {
  return Reader<T>::from(*this, "the value");
}

#define GANTRY_INSTANTIATE(...)                                    \
  template GANTRY_API __VA_ARGS__ Config::as<__VA_ARGS__>() const; \
  template GANTRY_API __VA_ARGS__ Config::get<__VA_ARGS__>(std::string_view) const;
GANTRY_INSTANTIATE(bool)
GANTRY_INSTANTIATE(int64_t)
GANTRY_INSTANTIATE(double)
GANTRY_INSTANTIATE(std::string)
GANTRY_INSTANTIATE(Interval)
GANTRY_INSTANTIATE(Config)
GANTRY_INSTANTIATE(std::vector<int64_t>)
GANTRY_INSTANTIATE(std::vector<double>)
GANTRY_INSTANTIATE(std::vector<std::string>)
GANTRY_INSTANTIATE(std::vector<Config>)
#undef GANTRY_INSTANTIATE

}  // namespace gantry
