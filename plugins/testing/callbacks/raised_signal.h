#pragma once

#include <gantry/config.h>
#include <gantry/parameters.h>

#include <string>

/// A signal that a test callback sends its own process, by its name in the configuration.
class RaisedSignal {
 public:
  /// Adds SIGNAL: "TERM" or "SIGTERM".
  static void declare(gantry::Parameters& parameters, const std::string& otherwise);
  explicit RaisedSignal(const gantry::Config& config);

  /// It has been taken when this returns, if it lets this return.
  void raise() const;

 private:
  const int number_;
};
