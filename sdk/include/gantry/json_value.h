#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gantry/export.h"

/// Reading JSON that may come from anyone: strict, its nesting limited, a name given twice in one object refused.
namespace gantry {

/// null, true and false, negative and other integers, other numbers, text.
using JsonScalar = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

/// A whole text. Members keep their order.
struct JsonValue {
  enum class Kind { scalar, object, array };
  Kind kind = Kind::scalar;
  JsonScalar scalar;
  std::vector<std::pair<std::string, JsonValue>> members;
  std::vector<JsonValue> items;

  /// Null when there is none.
  GANTRY_API const JsonValue* member(std::string_view name) const;
};

/// Throws gantry::Error that says what is wrong, and at which byte, but not in which file.
GANTRY_API JsonValue read_json(std::string_view text, int max_depth);

}  // namespace gantry
