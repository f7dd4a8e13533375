#pragma once

#include <string>

namespace plugins_check {

/// What `gantry stop-and-go --json` found.
struct StopAndGoReport {
  bool differs = false;  ///< else something else went wrong
  bool repeats = true;   ///< whether two runs that nothing interrupts are equal
  std::string text;      ///< the first difference, or what went wrong
};

StopAndGoReport read_stop_and_go_report(const std::string& json);

}  // namespace plugins_check
