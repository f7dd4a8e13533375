#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What the reader and the writer of safetensors files agree on.

namespace gantry {

inline constexpr int64_t kSafetensorsLengthBytes = 8;          ///< the header's length, little-endian
inline constexpr int64_t kSafetensorsMaxHeader = 100'000'000;  ///< bytes
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

/// "F32"; empty for types that the format does not know.
std::string_view safetensors_dtype(at::ScalarType dtype);
std::optional<at::ScalarType> dtype_of_safetensors(std::string_view name);
/// "F64, F32, ..."
std::string safetensors_dtypes();

/// Why a name may not stand in a file, "is empty"; empty when it may.
std::string safetensors_name_defect(std::string_view name);

}  // namespace gantry
