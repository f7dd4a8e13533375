#pragma once

#include "gantry/session.h"

namespace gantry::host {

/// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 as requests to pause, of which a run arms those that it wants. Until
/// arm() they do what they do; one that was ignored when the program started (nohup's SIGHUP) stays ignored. Handlers
/// belong to the process: one object, and they stay when it is gone.
class Signals final : public Interrupts {
 public:
  void arm(const std::vector<std::string>& signals) override;
  const char* pending() const override;
  void ignore() override;

 private:
  std::vector<int> armed_;
};

}  // namespace gantry::host
