#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gantry/config.h"

/// Scalars as typed values: the rules of the configuration language, in one place.

namespace gantry {

/// Each stores the value and returns nothing, or says what is wrong: "must be an integer, got the text 'abc'".
/// The sentence lacks its subject, which the caller knows.
std::string read(const Config& value, bool& out);
std::string read(const Config& value, int64_t& out);
std::string read(const Config& value, double& out);
std::string read(const Config& value, std::string& out);
/// A bare number takes `bare_unit`. In a resolved configuration every interval names its unit, but for `loop`.
std::string read(const Config& value, Interval& out, Interval::Unit bare_unit = Interval::Unit::loop);

const char* unit_text(Interval::Unit unit);           ///< "iterations", ...; "loop"
std::string interval_text(const Interval& interval);  ///< "500 iterations"

bool looks_like_number(std::string_view text);
bool looks_like_boolean(std::string_view text);
/// What an unquoted scalar means nothing by: empty, ~, null.
bool looks_like_null(std::string_view text);

/// The same value at another place.
Config relocated(const Config& value, const SourceLocation& where);

}  // namespace gantry
