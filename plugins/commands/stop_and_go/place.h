#pragma once

#include <gantry/fields.h>

#include <cstdint>
#include <string>

namespace stop_and_go {

/// Where a run is to be stopped: after the number-th iteration of a mode, counted over the whole run; 0: before the
/// first of the training.
struct Place {
  gantry::Mode mode = gantry::Mode::train;
  int64_t number = 0;

  bool operator==(const Place&) const = default;
  std::string text() const;      ///< as it is typed: "13", "eval:3"
  std::string sentence() const;  ///< "after iteration 13", "after evaluation batch 3", "before the first iteration"
};

/// Throws gantry::Error.
Place parse_place(const std::string& text);

}  // namespace stop_and_go
