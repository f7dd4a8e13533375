#include "gantry/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace gantry {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Insertions, deletions, replacements and swaps of neighbours (Damerau-Levenshtein, each place edited once).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1000) return cat(bytes, bytes == 1 ? " byte" : " bytes");
  static constexpr const char* units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double size = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; size >= 999.95 && unit + 1 < std::size(units); ++unit) size /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", size, units[unit]);
  return text;
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += separator;
    text += items[i];
  }
  return text;
}

std::vector<std::string> near_matches(std::string_view word, const std::vector<std::string>& candidates,
                                      std::size_t limit) {
  constexpr std::size_t kLongest = 100;  // nobody misspells longer names; keeps the table small
  if (word.empty() || word.size() > kLongest) return {};
  const std::string wanted = lower(word);
  const std::size_t farthest = std::max<std::size_t>(1, wanted.size() / 3);
  std::vector<std::pair<std::size_t, const std::string*>> near;
  for (const std::string& candidate : candidates) {
    const std::size_t shorter = std::min(candidate.size(), wanted.size());
    if (std::max(candidate.size(), wanted.size()) - shorter > farthest) continue;
    const std::size_t distance = edit_distance(wanted, lower(candidate));
    if (distance <= farthest && distance < wanted.size()) near.emplace_back(distance, &candidate);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [distance, candidate] : near) {
    if (names.size() == limit) break;
    names.push_back(*candidate);
  }
  return names;
}

std::string short_number(double value) {
  const double size = std::fabs(value);
  char text[32];
  std::snprintf(text, sizeof text, value == 0 || (size >= 0.01 && size < 1e6) ? "%.4f" : "%.4g", value);
  return text;
}

}  // namespace gantry
