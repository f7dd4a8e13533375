#include "safetensors_format.h"

#include <vector>

#include "gantry/json.h"
#include "gantry/text.h"

namespace gantry {
namespace {

struct Dtype {
  std::string_view name;
  at::ScalarType dtype;
};

constexpr Dtype kDtypes[] = {
    {"F64", at::ScalarType::Double},
    {"F32", at::ScalarType::Float},
    {"F16", at::ScalarType::Half},
    {"BF16", at::ScalarType::BFloat16},
    {"F8_E4M3", at::ScalarType::Float8_e4m3fn},
    {"F8_E5M2", at::ScalarType::Float8_e5m2},
    {"C64", at::ScalarType::ComplexFloat},
    {"I64", at::ScalarType::Long},
    {"I32", at::ScalarType::Int},
    {"I16", at::ScalarType::Short},
    {"I8", at::ScalarType::Char},
    {"U64", at::ScalarType::UInt64},
    {"U32", at::ScalarType::UInt32},
    {"U16", at::ScalarType::UInt16},
    {"U8", at::ScalarType::Byte},
    {"BOOL", at::ScalarType::Bool},
};

}  // namespace

std::string_view safetensors_dtype(at::ScalarType dtype) {
  for (const Dtype& known : kDtypes) {
    if (known.dtype == dtype) return known.name;
  }
  return {};
}

std::optional<at::ScalarType> dtype_of_safetensors(std::string_view name) {
  for (const Dtype& known : kDtypes) {
    if (known.name == name) return known.dtype;
  }
  return std::nullopt;
}

std::string safetensors_dtypes() {
  std::vector<std::string> names;
  for (const Dtype& known : kDtypes) names.emplace_back(known.name);
  return join(names, ", ");
}

std::string safetensors_name_defect(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name == kSafetensorsMetadata) return "is the format's own";
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_length(name.substr(i));
    if (length == 0) return cat("is no UTF-8 at its byte ", i + 1);
    const auto first = static_cast<unsigned char>(name[i]);
    // Those below 0x20, 0x7f, and U+0080 to U+009F, which terminals obey too.
    const bool control =
        first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(name[i + 1]) < 0xa0);
    if (control) return cat("has a control character at its byte ", i + 1);
    i += length;
  }
  return {};
}

}  // namespace gantry
