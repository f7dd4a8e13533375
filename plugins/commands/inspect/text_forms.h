#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Forms of text that both reports use.

using Row = std::vector<std::string>;

/// The rows in aligned columns, each line indented by two spaces. `right_aligned[i]`: column i holds numbers.
std::string columns(const std::vector<Row>& rows, const std::vector<bool>& right_aligned);

/// Text of a file's for a terminal: control characters, which it would obey, become '?'.
std::string printable(std::string_view text);

/// "1 tensor", "3 tensors"
std::string count(int64_t number, std::string_view noun);

/// A JSON object; the values are JSON already.
std::string json_members(const std::vector<std::pair<std::string, std::string>>& members);
std::string json_texts(const std::vector<std::pair<std::string, std::string>>& texts);
