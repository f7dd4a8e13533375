#include "text_forms.h"

#include <gantry/json.h>
#include <gantry/text.h>

#include <algorithm>

std::string columns(const std::vector<Row>& rows, const std::vector<bool>& right_aligned) {
  std::vector<std::size_t> widths(right_aligned.size(), 0);
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      line += "  " + (right_aligned[i] ? blanks + row[i] : row[i] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = gantry::utf8_length(text);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const bool control = length == 0 || byte(0) < 0x20 || byte(0) == 0x7f || (byte(0) == 0xc2 && byte(1) < 0xa0);
    out += control ? std::string_view("?") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string count(int64_t number, std::string_view noun) {
  return gantry::cat(number, ' ', noun, number == 1 ? "" : "s");
}

std::string json_members(const std::vector<std::pair<std::string, std::string>>& members) {
  std::vector<std::string> items;
  for (const auto& [key, value] : members) items.push_back(gantry::cat(gantry::json_string(key), ": ", value));
  return "{" + gantry::join(items, ", ") + "}";
}

std::string json_texts(const std::vector<std::pair<std::string, std::string>>& texts) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [key, value] : texts) members.emplace_back(key, gantry::json_string(value));
  return json_members(members);
}
