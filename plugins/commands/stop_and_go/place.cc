#include "place.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <charconv>

namespace stop_and_go {

std::string Place::text() const {
  return mode == gantry::Mode::train ? gantry::cat(number) : gantry::cat(gantry::mode_name(mode), ":", number);
}

std::string Place::sentence() const {
  if (mode == gantry::Mode::eval) return gantry::cat("after evaluation batch ", number);
  if (mode == gantry::Mode::test) return gantry::cat("after test batch ", number);
  return number == 0 ? "before the first iteration" : gantry::cat("after iteration ", number);
}

Place parse_place(const std::string& text) {
  Place place;
  std::string number = text;
  for (const gantry::Mode mode : {gantry::Mode::eval, gantry::Mode::test}) {
    const std::string prefix = gantry::cat(gantry::mode_name(mode), ":");
    if (!text.starts_with(prefix)) continue;
    place.mode = mode;
    number = text.substr(prefix.size());
  }
  const char* end = number.data() + number.size();
  const auto [at, problem] = std::from_chars(number.data(), end, place.number);
  if (number.empty() || problem != std::errc() || at != end || place.number < 0)
    throw gantry::Error(gantry::cat("'", text,
                                    "' is no place to stop at: write 13 (after iteration 13 of the training), "
                                    "eval:3 or test:3 (after the 3rd batch of all evaluations or tests), 0 (before the "
                                    "first iteration)"));
  if (place.mode != gantry::Mode::train && place.number == 0)
    throw gantry::Error(gantry::cat("'", text, "' is no place to stop at: batches are counted from 1"));
  return place;
}

}  // namespace stop_and_go
