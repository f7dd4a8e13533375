#include "flow_value.h"

#include <string>
#include <utility>
#include <vector>

#include "config_read.h"
#include "gantry/text.h"
#include "message.h"

namespace gantry {
namespace {

class FlowParser {
 public:
  FlowParser(std::string_view text, const SourceLocation& where) : text_(text), where_(where) {}

  Config whole() {
    skip_blanks();
    if (text_.find('\0') != std::string_view::npos) fail("holds a NUL byte");
    if (at_end() || std::string_view("[{'\"").find(peek()) == std::string_view::npos) {
      const std::size_t last = text_.find_last_not_of(" \t");
      return plain(at_end() ? "" : text_.substr(at_, last + 1 - at_));
    }
    Config result = value(0);
    skip_blanks();
    if (!at_end()) fail(cat("has ", quoted_for_message(text_.substr(at_)), " after its end"));
    return result;
  }

 private:
  Config value(int depth) {
    constexpr int kDeepest = 100;
    if (depth > kDeepest) fail(cat("is nested more than ", kDeepest, " deep"));
    skip_blanks();
    if (at_end()) fail("ends too early");
    if (peek() == '[') return list(depth);
    if (peek() == '{') return map(depth);
    if (peek() == '\'' || peek() == '"') return Config::scalar(quoted(), where_, /*quoted=*/true);
    return plain(plain_text());
  }

  Config list(int depth) {
    ++at_;
    std::vector<Config> items;
    while (!closes(']')) {
      items.push_back(value(depth + 1));
      separator(']');
    }
    return Config::list(std::move(items), where_);
  }

  Config map(int depth) {
    ++at_;
    std::vector<Config::Entry> entries;
    while (!closes('}')) {
      const bool in_quotes = peek() == '\'' || peek() == '"';
      std::string key = in_quotes ? quoted() : std::string(plain_text());
      if (key.empty()) fail("has a map with an empty key");
      for (const Config::Entry& entry : entries) {
        if (entry.key == key) fail(cat("has the key ", quoted_for_message(key), " twice"));
      }
      skip_blanks();
      if (at_end() || peek() != ':') fail(cat("lacks ': ' after the key ", quoted_for_message(key)));
      ++at_;
      skip_blanks();
      const bool nothing = !at_end() && (peek() == ',' || peek() == '}');
      Config item = nothing ? Config::null(where_) : value(depth + 1);
      entries.push_back({std::move(key), where_, std::move(item)});
      separator('}');
    }
    return Config::map(std::move(entries), where_);
  }

  bool closes(char bracket) {
    skip_blanks();
    if (at_end()) fail(cat("lacks a closing ", bracket));
    if (peek() != bracket) return false;
    ++at_;
    return true;
  }

  void separator(char bracket) {
    skip_blanks();
    if (at_end()) fail(cat("lacks a closing ", bracket));
    if (peek() == ',') {
      ++at_;
    } else if (peek() != bracket) {
      fail(cat("has ", quoted_for_message(text_.substr(at_)), " where , or ", bracket, " is expected"));
    }
  }

  std::string quoted() {
    const char quote = text_[at_++];
    std::string out;
    for (; !at_end(); ++at_) {
      const char c = peek();
      if (c == quote) {
        ++at_;
        if (quote == '"' || at_end() || peek() != quote) return out;
        out += quote;
      } else if (c == '\\' && quote == '"') {
        out += escape();
      } else {
        out += c;
      }
    }
    fail("lacks a closing quote");
  }

  char escape() {
    if (++at_ == text_.size()) fail("lacks a closing quote");
    switch (peek()) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case '"':
        return '"';
      case '\\':
        return '\\';
      case '/':
        return '/';
      default:
        fail(cat("has the unknown escape \\", text_.substr(at_, 1)));
    }
  }

  // Up to what ends a plain scalar inside of brackets.
  std::string_view plain_text() {
    const std::size_t begin = at_;
    while (!at_end() && std::string_view(",[]{}").find(peek()) == std::string_view::npos) {
      const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
      if (peek() == ':' && std::string_view(" \t,[]{}").find(next) != std::string_view::npos) break;
      ++at_;
    }
    const std::string_view raw = text_.substr(begin, at_ - begin);
    const std::size_t last = raw.find_last_not_of(" \t");
    if (last == std::string_view::npos) {
      fail(cat("has ", quoted_for_message(text_.substr(begin)), " where a value is expected"));
    }
    return raw.substr(0, last + 1);
  }

  Config plain(std::string_view text) const {
    return looks_like_null(text) ? Config::null(where_) : Config::scalar(std::string(text), where_);
  }

  void skip_blanks() {
    while (!at_end() && (peek() == ' ' || peek() == '\t')) ++at_;
  }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }

  [[noreturn]] void fail(const std::string& problem) const {
    throw ConfigError(where_, cat("the value ", quoted_for_message(text_), " ", problem));
  }

  std::string_view text_;
  const SourceLocation& where_;
  std::size_t at_ = 0;
};

}  // namespace

Config parse_flow_value(std::string_view text, const SourceLocation& where) { return FlowParser(text, where).whole(); }

}  // namespace gantry
