#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/export.h"

namespace gantry {

/// The arguments one after the other, as `operator<<` prints them: cat("got ", 3, " of ", n).
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

/// A double as the shortest text that reads back as the same value; always with a '.', an exponent, or
/// one of nan, inf, -inf.
GANTRY_API std::string number_text(double value);

/// A double for a person to read: four decimals, or four significant digits where that would show a zero or
/// too much ("0.0512", "1.2e-05"). Log lines use it.
GANTRY_API std::string short_number(double value);

/// An amount of memory: "512 bytes", "12.3 MB" (of a million bytes).
GANTRY_API std::string bytes_text(int64_t bytes);

/// `items` with `separator` between them.
GANTRY_API std::string join(const std::vector<std::string>& items, std::string_view separator);

/// The candidates that a person may have meant by `word`, closest first, at most `limit`; empty when
/// nothing is near. Case is ignored.
GANTRY_API std::vector<std::string> near_matches(std::string_view word, const std::vector<std::string>& candidates,
                                                 std::size_t limit = 3);

}  // namespace gantry
