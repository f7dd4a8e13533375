#include "config_read.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "gantry/text.h"
#include "message.h"

namespace gantry {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<bool> parse_boolean(std::string_view text) {
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

enum class Parsed { ok, malformed, out_of_range };

// The number that `text` begins with; `used` is its length. Special values are words, not numbers with units.
Parsed parse_leading_number(std::string_view text, double& out, std::size_t& used) {
  const std::size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const std::string_view digits = text.substr(sign);
  const std::size_t first = !digits.empty() && digits[0] == '.' ? 1 : 0;
  if (digits.size() <= first || !is_digit(digits[first])) return Parsed::malformed;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  used = sign + static_cast<std::size_t>(result.ptr - digits.data());
  if (result.ec == std::errc::result_out_of_range) return Parsed::out_of_range;
  if (result.ec != std::errc()) return Parsed::malformed;
  if (text[0] == '-') out = -out;
  return Parsed::ok;
}

Parsed parse_number(std::string_view text, double& out) {
  const std::string word = lower(text);
  if (word == "nan" || word == ".nan") {
    out = std::numeric_limits<double>::quiet_NaN();
    return Parsed::ok;
  }
  const std::size_t sign = !word.empty() && (word[0] == '+' || word[0] == '-') ? 1 : 0;
  if (word.substr(sign) == "inf" || word.substr(sign) == ".inf") {
    out = word[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return Parsed::ok;
  }
  std::size_t used = 0;
  const Parsed parsed = parse_leading_number(text, out, used);
  if (parsed == Parsed::malformed || used != text.size()) return Parsed::malformed;
  return parsed;
}

// In decimal arithmetic, so that 1e18 is exact and 1.5e0 is seen to be no integer.
Parsed parse_integer(std::string_view text, int64_t& out) {
  std::size_t i = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const bool negative = i == 1 && text[0] == '-';
  std::string digits;
  while (i < text.size() && is_digit(text[i])) digits += text[i++];
  long exponent = 0;
  if (i < text.size()) {
    if (text[i] == '.') {
      ++i;
      while (i < text.size() && is_digit(text[i])) {
        digits += text[i++];
        --exponent;
      }
    }
    if (i == text.size() || (text[i] != 'e' && text[i] != 'E')) return Parsed::malformed;
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    long written = 0;
    const auto result = std::from_chars(text.data() + i, text.data() + text.size(), written);
    if (result.ptr != text.data() + text.size() || result.ptr == text.data() + i) return Parsed::malformed;
    if (result.ec != std::errc() || std::labs(written) > 1000000) return Parsed::out_of_range;
    exponent += written;
  }
  if (digits.empty()) return Parsed::malformed;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (exponent < 0 && !digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  if (digits.empty()) {
    out = 0;
    return Parsed::ok;
  }
  if (exponent < 0) return Parsed::malformed;
  if (static_cast<long>(digits.size()) + exponent > 19) return Parsed::out_of_range;
  digits.append(static_cast<std::size_t>(exponent), '0');
  uint64_t magnitude = 0;
  for (const char c : digits) magnitude = magnitude * 10 + static_cast<uint64_t>(c - '0');
  const uint64_t largest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (magnitude > largest) return Parsed::out_of_range;
  out = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return Parsed::ok;
}

std::string refusal(const Config& value, std::string_view expected, bool fits_unquoted) {
  if (value.type() == Config::Type::scalar && value.quoted() && fits_unquoted) {
    return cat("must be ", expected, "; ", quoted_for_message(value.text()), " is quoted: write ", value.text());
  }
  return cat("must be ", expected, ", got ", value.describe());
}

bool plain_scalar(const Config& value) { return value.type() == Config::Type::scalar && !value.quoted(); }

struct UnitWord {
  const char* word;
  Interval::Unit unit;
  double factor;
};
constexpr UnitWord kUnitWords[] = {
    {"iter", Interval::Unit::iterations, 1},
    {"iters", Interval::Unit::iterations, 1},
    {"iteration", Interval::Unit::iterations, 1},
    {"iterations", Interval::Unit::iterations, 1},
    {"step", Interval::Unit::steps, 1},
    {"steps", Interval::Unit::steps, 1},
    {"epoch", Interval::Unit::epochs, 1},
    {"epochs", Interval::Unit::epochs, 1},
    {"s", Interval::Unit::seconds, 1},
    {"sec", Interval::Unit::seconds, 1},
    {"second", Interval::Unit::seconds, 1},
    {"seconds", Interval::Unit::seconds, 1},
    {"min", Interval::Unit::seconds, 60},
    {"minute", Interval::Unit::seconds, 60},
    {"minutes", Interval::Unit::seconds, 60},
    {"h", Interval::Unit::seconds, 3600},
    {"hour", Interval::Unit::seconds, 3600},
    {"hours", Interval::Unit::seconds, 3600},
};

}  // namespace

bool looks_like_number(std::string_view text) {
  double ignored = 0;
  return parse_number(text, ignored) != Parsed::malformed;
}

bool looks_like_boolean(std::string_view text) { return parse_boolean(text).has_value(); }

bool looks_like_null(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

std::string read(const Config& value, bool& out) {
  const std::optional<bool> parsed = parse_boolean(value.text());
  if (!parsed || !plain_scalar(value)) return refusal(value, "true or false", parsed.has_value());
  out = *parsed;
  return {};
}

std::string read(const Config& value, int64_t& out) {
  const Parsed parsed = parse_integer(value.text(), out);
  if (parsed == Parsed::ok && plain_scalar(value)) return {};
  if (parsed == Parsed::out_of_range && plain_scalar(value)) {
    return cat("must be an integer between ", std::numeric_limits<int64_t>::min(), " and ",
               std::numeric_limits<int64_t>::max(), ", got ", value.text());
  }
  return refusal(value, "an integer", parsed == Parsed::ok);
}

std::string read(const Config& value, double& out) {
  const Parsed parsed = parse_number(value.text(), out);
  if (parsed == Parsed::ok && plain_scalar(value)) return {};
  if (parsed == Parsed::out_of_range && plain_scalar(value)) {
    return cat("must be a number that a double can hold, got ", value.text());
  }
  return refusal(value, "a number", parsed == Parsed::ok);
}

std::string read(const Config& value, std::string& out) {
  if (value.type() != Config::Type::scalar) return refusal(value, "a string", false);
  out = value.text();
  return {};
}

std::string read(const Config& value, Interval& out, Interval::Unit bare_unit) {
  const char* bare = bare_unit == Interval::Unit::loop ? "epochs, or iterations with MAX_STEPS" : unit_text(bare_unit);
  const bool time = bare_unit == Interval::Unit::seconds;
  const std::string expected = time ? "a time, such as 90 s, 30 min or 4 h"
                                    : cat("an interval, such as 50 (", bare, "), 500 iters, 500 steps or 2 epochs");
  const std::string& text = value.text();
  std::size_t used = 0;
  double count = 0;
  if (value.type() != Config::Type::scalar || parse_leading_number(text, count, used) != Parsed::ok) {
    return refusal(value, expected, false);
  }
  const std::size_t begin = text.find_first_not_of(" \t", used);
  const std::string word = begin == std::string::npos ? "" : lower(std::string_view(text).substr(begin));
  if (word.empty()) {
    if (value.quoted()) return refusal(value, expected, true);
    out = {count, bare_unit};
  } else {
    const auto* found = std::find_if(std::begin(kUnitWords), std::end(kUnitWords),
                                     [&](const UnitWord& candidate) { return word == candidate.word; });
    if (time && (found == std::end(kUnitWords) || found->unit != Interval::Unit::seconds))
      return refusal(value, expected, false);
    if (found == std::end(kUnitWords)) {
      return cat("has the unit ", quoted_for_message(word), ", which is none of iters, steps, epochs, s, min, h");
    }
    out = {count * found->factor, found->unit};
  }
  if (out.unit != Interval::Unit::seconds && std::trunc(out.count) != out.count) {
    return cat("must be a whole number", out.unit == Interval::Unit::loop ? "" : " of ",
               out.unit == Interval::Unit::loop ? "" : unit_text(out.unit), ", got ", plain_number(out.count));
  }
  return {};
}

const char* unit_text(Interval::Unit unit) {
  switch (unit) {
    case Interval::Unit::iterations:
      return "iterations";
    case Interval::Unit::steps:
      return "steps";
    case Interval::Unit::epochs:
      return "epochs";
    case Interval::Unit::seconds:
      return "seconds";
    case Interval::Unit::loop:
      return "loop";
  }
  return "";
}

std::string interval_text(const Interval& interval) {
  if (interval.unit == Interval::Unit::loop) return plain_number(interval.count);
  return cat(plain_number(interval.count), " ", unit_text(interval.unit));
}

Config relocated(const Config& value, const SourceLocation& where) {
  switch (value.type()) {
    case Config::Type::null:
      return Config::null(where);
    case Config::Type::scalar:
      return Config::scalar(value.text(), where, value.quoted());
    case Config::Type::list: {
      std::vector<Config> items;
      for (const Config& item : value.items()) items.push_back(relocated(item, where));
      return Config::list(std::move(items), where);
    }
    case Config::Type::map: {
      std::vector<Config::Entry> entries;
      for (const Config::Entry& entry : value.entries()) {
        entries.push_back({entry.key, where, relocated(entry.value, where)});
      }
      return Config::map(std::move(entries), where);
    }
  }
  return {};
}

}  // namespace gantry
