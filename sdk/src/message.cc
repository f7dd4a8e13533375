#include "message.h"

#include <cmath>
#include <cstdint>

#include "gantry/text.h"

namespace gantry {

std::string quoted_for_message(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // Not inside a UTF-8 sequence, whose later bytes are 10xxxxxx.
    if (out.size() > kLongest && (c & 0xC0) != 0x80) {
      out += "...";
      break;
    }
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7f) {
      out += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "'";
}

std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiou").find(noun[0]) != std::string_view::npos;
  return cat(vowel ? "an " : "a ", noun);
}

std::string suggestions(std::string_view word, const std::vector<std::string>& known) {
  std::string text;
  const std::vector<std::string> near = near_matches(word, known);
  if (!near.empty()) {
    std::vector<std::string> quoted;
    for (const std::string& candidate : near) quoted.push_back(cat("'", candidate, "'"));
    text += cat("; did you mean ", join(quoted, " or "), "?");
  }
  if (!known.empty()) text += cat(near.empty() ? "; known: " : " known: ", join(known, ", "));
  return text;
}

std::string plain_number(double value) {
  if (std::trunc(value) == value && std::fabs(value) < 1e15) return std::to_string(static_cast<int64_t>(value));
  return number_text(value);
}

}  // namespace gantry
