#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// JSON that may come from anyone: strict, its nesting limited, a name given twice in one object refused.

namespace gantry {

/// null, true and false, negative and other integers, other numbers, text.
using JsonScalar = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

/// Receives a text piece by piece, and throws gantry::Error to refuse it.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void begin_object() = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
  virtual void key(std::string name) = 0;
  virtual void scalar(JsonScalar value) = 0;
};

/// Throws gantry::Error that says what is wrong, and at which byte, but not in which file.
void read_json(std::string_view text, int max_depth, JsonEvents& events);

/// A whole text. Members keep their order.
struct JsonValue {
  enum class Kind { scalar, object, array };
  Kind kind = Kind::scalar;
  JsonScalar scalar;
  std::vector<std::pair<std::string, JsonValue>> members;
  std::vector<JsonValue> items;

  /// Null when there is none.
  const JsonValue* member(std::string_view name) const;
};
JsonValue read_json(std::string_view text, int max_depth);

/// For messages: "null", "-3", "the text 'abc'".
std::string json_scalar_text(const JsonScalar& scalar);

}  // namespace gantry
