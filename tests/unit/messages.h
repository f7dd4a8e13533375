#pragma once

#include <string>

#include "gantry/error.h"

/// What a call throws, as text; "nothing was thrown" if nothing. Exceptions other than E pass.
template <class E = gantry::Error, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
