#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/safetensors.h"

namespace gantry {

/// The JSON at the head of a safetensors file, checked.
struct SafetensorsHeader {
  std::vector<SafetensorsFile::Entry> entries;  ///< in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// `data_size`: the bytes that follow the header. Throws gantry::Error that names tensors and numbers, but not the
/// file.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_size);

}  // namespace gantry
