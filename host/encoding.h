#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::host {

/// Length in bytes of the UTF-8 character that `text` begins with; 0 when it begins with none.
std::size_t utf8_length(std::string_view text);

/// `text` as a JSON string, with its quotes. Bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

/// A JSON object and an array; values and items are JSON already.
std::string json_object(std::initializer_list<std::pair<const char*, std::string>> members);
std::string json_array(const std::vector<std::string>& items);

}  // namespace gantry::host
