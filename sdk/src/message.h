#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Pieces of messages about a configuration.

namespace gantry {

/// The text in single quotes, fit for one line of a terminal: control characters escaped, cut when long.
std::string quoted_for_message(std::string_view text);

/// "an optimizer", "a model".
std::string with_article(std::string_view noun);

/// "; did you mean 'A' or 'B'? known: A, B, C", as far as there is anything to say.
std::string suggestions(std::string_view word, const std::vector<std::string>& known);

/// A count or a bound: "3", "0.5", "1e-08".
std::string plain_number(double value);

}  // namespace gantry
