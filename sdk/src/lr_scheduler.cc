#include "gantry/lr_scheduler.h"

namespace gantry {

void LrScheduler::declare_common(Parameters& parameters) {
  parameters.optional<std::string>("UNIT")
      .choices({"step", "epoch"})
      .help("What the schedule counts: optimizer steps, or completed epochs. The default is the schedule's own.");
  parameters.foreign("LAST_EPOCH", {"-1"}, "a run that goes on from a checkpoint knows where it stands");
}

LrScheduler::~LrScheduler() = default;
MomentumSchedule::~MomentumSchedule() = default;
bool LrScheduler::counts_epochs_by_default() const { return false; }

}  // namespace gantry
