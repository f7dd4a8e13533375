#pragma once

#include <string>
#include <string_view>

#include "gantry/json_value.h"

/// The reader behind gantry/json_value.h, for texts that are not to be kept whole.

namespace gantry {

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

/// For messages: "null", "-3", "the text 'abc'".
std::string json_scalar_text(const JsonScalar& scalar);

}  // namespace gantry
