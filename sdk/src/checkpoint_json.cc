#include "checkpoint_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "gantry/error.h"
#include "gantry/json.h"
#include "gantry/text.h"
#include "gantry/version.h"
#include "json_read.h"
#include "message.h"
#include "safetensors_format.h"
#include "xxh3.h"

namespace gantry {
namespace {

constexpr uint64_t kFormat = 1;
constexpr int kDepth = 3;  // the account, its files, one of them
constexpr std::size_t kHashDigits = 16;

/// The last member. The hash is that of all bytes before it, so that no byte of the file can change unnoticed.
std::string tail(std::string_view before) {
  Xxh3 hash;
  hash.update(before.data(), before.size());
  return cat("  \"xxh3\": \"", hash.hex(), "\"\n}\n");
}

std::string text_of(const std::string& value) { return json_string(value); }
std::string text_of(double value) { return json_number(value); }
std::string text_of(const CheckpointInfo::File& file) {
  return json_object({{"size", std::to_string(file.size)}, {"xxh3", json_string(file.xxh3)}});
}

template <class T>
std::string object_text(const char* name, const std::vector<std::pair<std::string, T>>& members) {
  std::vector<std::string> keys, lines;
  for (const auto& [key, value] : members) {
    keys.push_back(json_string(key));
    lines.push_back(cat("\n    ", keys.back(), ": ", text_of(value)));
  }
  std::sort(keys.begin(), keys.end());
  if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end()) {
    throw std::logic_error(cat("a checkpoint's ", name, " have ", *twice, " twice"));
  }
  return cat("  ", json_string(name), ": {", join(lines, ","), lines.empty() ? "},\n" : "\n  },\n");
}

/// Reads members, and says which one is wrong.
class Account {
 public:
  explicit Account(std::string_view text) : root_(read_json(text, kDepth)) {
    if (root_.kind != JsonValue::Kind::object) throw Error("is not an object");
  }

  template <class T>
  const T& scalar(const JsonValue& parent, const char* name, const std::string& where, const char* what) const {
    const JsonValue* value = parent.member(name);
    if (value == nullptr) throw Error(cat("has no ", where));
    if (value->kind != JsonValue::Kind::scalar || !std::holds_alternative<T>(value->scalar)) {
      throw Error(cat("has ", where, " as ", kind_text(*value), ", which must be ", what));
    }
    return std::get<T>(value->scalar);
  }
  int64_t count(const JsonValue& parent, const char* name, const std::string& where) const {
    const auto value = scalar<uint64_t>(parent, name, where, "a whole number, 0 or more");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw Error(cat("has ", where, " as ", value, ", which is too large"));
    }
    return static_cast<int64_t>(value);
  }
  int64_t count(const char* name) const { return count(root_, name, quoted_for_message(name)); }
  const std::string& text(const JsonValue& parent, const char* name, const std::string& where) const {
    return scalar<std::string>(parent, name, where, "a text");
  }
  const std::string& text(const char* name) const { return text(root_, name, quoted_for_message(name)); }

  const JsonValue& object(const char* name) const {
    const JsonValue* value = root_.member(name);
    if (value == nullptr) throw Error(cat("has no ", quoted_for_message(name)));
    if (value->kind != JsonValue::Kind::object) {
      throw Error(cat("has ", quoted_for_message(name), " as ", kind_text(*value), ", which must be an object"));
    }
    return *value;
  }
  std::vector<std::pair<std::string, std::string>> texts(const char* name) const {
    std::vector<std::pair<std::string, std::string>> result;
    const JsonValue& parent = object(name);
    for (const auto& [key, value] : parent.members) {
      if (value.kind != JsonValue::Kind::scalar || !std::holds_alternative<std::string>(value.scalar)) {
        throw Error(cat("has ", quoted_for_message(key), " in ", quoted_for_message(name), " as ", kind_text(value),
                        ", which must be a text"));
      }
      result.emplace_back(key, std::get<std::string>(value.scalar));
    }
    return result;
  }
  std::vector<std::pair<std::string, double>> numbers(const char* name) const {
    std::vector<std::pair<std::string, double>> result;
    for (const auto& [key, value] : object(name).members) {
      if (const double* number = std::get_if<double>(&value.scalar)) {
        result.emplace_back(key, *number);
      } else if (value.kind == JsonValue::Kind::scalar && std::holds_alternative<std::monostate>(value.scalar)) {
        result.emplace_back(key, std::nan(""));
      } else {
        throw Error(cat("has ", quoted_for_message(key), " in ", quoted_for_message(name), " as ", kind_text(value),
                        ", which must be a number with a point or an exponent, or null"));
      }
    }
    return result;
  }

 private:
  static std::string kind_text(const JsonValue& value) {
    if (value.kind == JsonValue::Kind::object) return "an object";
    return value.kind == JsonValue::Kind::array ? "a list" : json_scalar_text(value.scalar);
  }

  JsonValue root_;
};

std::vector<CheckpointInfo::File> read_files(const Account& account) {
  std::vector<CheckpointInfo::File> files;
  for (const auto& [name, value] : account.object("files").members) {
    const std::string where = quoted_for_message(name);
    if (!is_plain_name(name)) throw Error(cat("names a file ", where, ", which cannot lie beside it"));
    CheckpointInfo::File file{name, account.count(value, "size", "the size of " + where),
                              account.text(value, "xxh3", "the xxh3 of " + where)};
    if (file.xxh3.size() != kHashDigits || file.xxh3.find_first_not_of("0123456789abcdef") != std::string::npos) {
      throw Error(cat("has the xxh3 of ", where, " as ", quoted_for_message(file.xxh3), ", which must be ", kHashDigits,
                      " hexadecimal digits"));
    }
    files.push_back(std::move(file));
  }
  for (const char* needed : {kModelFile, kOptimizerFile, kStateFile}) {
    const bool named = std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.name == needed; });
    if (!named) throw Error(cat("does not name ", needed));
  }
  return files;
}

void check_hash(std::string_view text) {
  const std::size_t size = tail({}).size();
  const std::string_view before = text.substr(0, text.size() - std::min(size, text.size()));
  const std::string_view found = text.substr(before.size());
  const std::string expected = tail(before);
  if (found == expected) return;
  const std::size_t digits = expected.find(": \"") + 3;
  const std::string_view says = found.size() == size ? found.substr(digits, kHashDigits) : std::string_view();
  if (found.size() != size || found.substr(0, digits) != std::string_view(expected).substr(0, digits) ||
      found.substr(digits + kHashDigits) != std::string_view(expected).substr(digits + kHashDigits)) {
    throw Error("does not end with its XXH3: it is truncated or damaged");
  }
  throw Error(cat("is damaged or was edited: it says that its XXH3 is ", quoted_for_message(says), ", but it is '",
                  std::string_view(expected).substr(digits, kHashDigits), "'"));
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         safetensors_name_defect(name).empty();
}

std::string checkpoint_json(const CheckpointInfo& info) {
  std::vector<std::pair<std::string, CheckpointInfo::File>> files;
  for (const CheckpointInfo::File& file : info.files) files.emplace_back(file.name, file);
  std::string text = "{\n";
  const auto add = [&](const char* name, const std::string& value) {
    text += cat("  ", json_string(name), ": ", value, ",\n");
  };
  add("format", std::to_string(kFormat));
  add("gantry", json_string(GANTRY_VERSION));
  add("iteration", std::to_string(info.iteration));
  add("epoch", std::to_string(info.epoch));
  add("step", std::to_string(info.step));
  add("phase", json_string(info.phase));
  add("why", json_string(info.why));
  add("saved", json_string(info.saved));
  text += object_text("metrics", info.metrics);
  text += object_text("files", files);
  text += object_text("machine", info.machine);
  text += object_text("settings", info.settings);
  return text + tail(text);
}

CheckpointInfo parse_checkpoint_json(std::string_view text) {
  try {
    check_hash(text);
    const Account account(text);
    if (const int64_t format = account.count("format"); format != static_cast<int64_t>(kFormat)) {
      if (format == 0) throw Error("has the format 0, which does not exist");
      throw Error(cat("has format ", format, ", written by Gantry ", account.text("gantry"), "; this one, ",
                      GANTRY_VERSION, ", reads format ", kFormat, ": use a newer Gantry"));
    }
    CheckpointInfo info;
    info.iteration = account.count("iteration");
    info.epoch = account.count("epoch");
    info.step = account.count("step");
    info.phase = account.text("phase");
    info.why = account.text("why");
    info.saved = account.text("saved");
    info.metrics = account.numbers("metrics");
    info.files = read_files(account);
    info.machine = account.texts("machine");
    info.settings = account.texts("settings");
    return info;
  } catch (const Error& error) {
    throw Error(cat("its ", kAccountFile, " ", error.what()));
  }
}

}  // namespace gantry
