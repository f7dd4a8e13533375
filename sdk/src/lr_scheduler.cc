#include "gantry/lr_scheduler.h"

namespace gantry {

void LrScheduler::declare_common(Parameters& parameters) {
  parameters.optional<std::string>("UNIT")
      .choices({"step", "epoch"})
      .help("What the schedule counts: optimizer steps, or completed epochs. The default is the schedule's own.");
}

LrScheduler::~LrScheduler() = default;
bool LrScheduler::counts_epochs_by_default() const { return false; }

}  // namespace gantry
