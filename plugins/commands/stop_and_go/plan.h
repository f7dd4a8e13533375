#pragma once

#include <gantry/recording.h>

#include <cstdint>
#include <set>
#include <vector>

#include "arguments.h"
#include "place.h"

namespace stop_and_go {

/// A place of the run at which it can be stopped.
struct Moment {
  Place place;
  int64_t iteration = 0;  ///< training iterations done where the run then pauses: at the window's end
  int64_t window = 0;     ///< moments of one window pause at the same place
  int64_t epoch = 0;
  bool ends_epoch = false;  ///< of training: nothing is left of the epoch but its end
};

/// What a run did, from start to end.
struct Course {
  std::vector<Moment> moments;  ///< in their order
  int64_t iterations = 0;       ///< of the training, by this run
  int64_t steps = 0;            ///< of the optimizer, by this run
  int64_t count(gantry::Mode mode) const;
};

/// Iterations that were done before the run began, where it goes on from a checkpoint itself.
struct Before {
  int64_t eval = 0, test = 0;
};

/// `event_order`: what EventOrderCallback recorded.
Course read_course(const gantry::Recording& event_order, const Before& before);

/// The stops that were asked for, in the order of the run. Throws gantry::Error for what the run does not have, and for
/// two that would pause at the same place.
std::vector<Moment> plan_stops(const Arguments& arguments, const Course& course);

/// One stop that gives a checkpoint its share of everything: in the middle of the run, within an epoch where that is
/// possible, and not after an iteration whose checkpoint is saved anyway.
Moment middle_of(const Course& course, const std::set<int64_t>& saved);

}  // namespace stop_and_go
