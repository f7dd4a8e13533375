#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/export.h"

namespace gantry {

/// Length in bytes of the UTF-8 character that `text` begins with; 0 when it begins with none.
GANTRY_API std::size_t utf8_length(std::string_view text);

/// `text` as a JSON string, with its quotes. Bytes that are no UTF-8 become U+FFFD.
GANTRY_API std::string json_string(std::string_view text);

/// A number; null for NaN and infinity, which JSON does not have.
GANTRY_API std::string json_number(double value);
/// A JSON object and an array; values and items are JSON already.
GANTRY_API std::string json_object(std::initializer_list<std::pair<const char*, std::string>> members);
GANTRY_API std::string json_array(const std::vector<std::string>& items);

}  // namespace gantry
