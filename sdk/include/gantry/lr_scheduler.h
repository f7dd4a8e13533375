#pragma once

#include <cstdint>

#include "gantry/export.h"
#include "gantry/parameters.h"

namespace gantry {

/// Where training stands when a learning rate is asked for: before optimizer step `step` (0-based).
struct SchedulePosition {
  double at = 0;  ///< in the schedule's UNIT: steps, or epochs completed (a fraction only on request)
  int64_t step = 0;
  double epoch = 0;         ///< completed epochs, with the fraction of the running one
  int64_t total_steps = 0;  ///< optimizer steps of the whole run
  double total_epochs = 0;
};

/// A learning rate as a pure function of the position and the group's base rate: nothing to save, nothing
/// to step. Schedules that do have state (plateau) also are Stateful. Main thread.
class GANTRY_API LrScheduler {
 public:
  /// UNIT: step | epoch.
  static void declare_common(Parameters& parameters);

  virtual ~LrScheduler();
  virtual double lr(const SchedulePosition& position, double base_lr, int64_t group) const = 0;
  /// Whether UNIT is epoch where the configuration leaves it open and the run counts epochs.
  virtual bool counts_epochs_by_default() const;
};

/// Capability of a schedule that also cycles the momentum (ParamGroup::momentum), as pure a function as the rate. The
/// optimizer must have one.
class GANTRY_API MomentumSchedule {
 public:
  virtual ~MomentumSchedule();
  /// NaN: it is to stay as it is.
  virtual double momentum(const SchedulePosition& position, int64_t group) const = 0;
};

}  // namespace gantry
