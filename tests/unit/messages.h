#pragma once

#include <string>

#include "gantry/error.h"

/// What a call throws, as text; "nothing was thrown" if nothing.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const gantry::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
