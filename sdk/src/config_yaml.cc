#include <algorithm>
#include <string>
#include <string_view>

#include "config_read.h"
#include "gantry/config.h"

namespace gantry {
namespace {

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// Only what YAML cannot read in any other way, in block and in flow style alike.
bool safe_plain(std::string_view text) {
  if (text.empty() || text.back() == ' ') return false;
  if (!is_alphanumeric(text[0]) && text[0] != '_' && text[0] != '/' && text[0] != '.') return false;
  if (text.substr(0, 3) == "...") return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || std::string_view("_./+- ").find(c) != std::string_view::npos;
  });
}

std::string quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  const bool controls =
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  std::string out(1, controls ? '"' : '\'');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (!controls) {
      out += c;
      if (c == '\'') out += c;
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + out[0];
}

// Composing replaces ${VAR}; a literal "${" must survive it.
std::string escape_variables(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '{') out += '$';
    out += text[i];
  }
  return out;
}

std::string key_text(const std::string& key) { return safe_plain(key) && !looks_like_null(key) ? key : quoted(key); }

std::string scalar_text(const Config& value) {
  const std::string& text = value.text();
  const bool number_or_boolean = looks_like_number(text) || looks_like_boolean(text);
  if (number_or_boolean && !value.quoted()) return text;
  if (number_or_boolean || looks_like_null(text) || !safe_plain(text)) return quoted(escape_variables(text));
  return text;
}

// Lists of scalars, and lists of those, stand on one line.
bool fits_flow(const Config& value) {
  if (value.type() == Config::Type::map) return value.entries().empty();
  return std::all_of(value.items().begin(), value.items().end(), fits_flow);
}

void write_flow(const Config& value, std::string& out) {
  switch (value.type()) {
    case Config::Type::null:
      out += "null";
      return;
    case Config::Type::scalar:
      out += scalar_text(value);
      return;
    case Config::Type::map:
      out += "{}";
      return;
    case Config::Type::list:
      break;
  }
  out += '[';
  const char* separator = "";
  for (const Config& item : value.items()) {
    out += separator;
    write_flow(item, out);
    separator = ", ";
  }
  out += ']';
}

// `out` stands at the value's first column; ends with a newline.
void write_block(const Config& value, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  bool first = true;
  const auto begin_line = [&] {
    if (!first) out += margin;
    first = false;
  };
  if (fits_flow(value)) {
    write_flow(value, out);
    out += '\n';
  } else if (value.type() == Config::Type::map) {
    for (const Config::Entry& entry : value.entries()) {
      begin_line();
      out += key_text(entry.key) + ":";
      if (fits_flow(entry.value)) {
        out += ' ';
      } else {
        out += '\n' + std::string(indent + 2, ' ');
      }
      write_block(entry.value, indent + 2, out);
    }
  } else {
    for (const Config& item : value.items()) {
      begin_line();
      out += "- ";
      write_block(item, indent + 2, out);
    }
  }
}

}  // namespace

std::string Config::yaml() const {
  std::string out;
  write_block(*this, 0, out);
  return out;
}

}  // namespace gantry
