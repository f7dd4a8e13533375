#pragma once

#include <gantry/state.h>

#include <cstdint>
#include <string>
#include <vector>

#include "curve_svg.h"

namespace val_loss {

/// A mean over the samples that have this value of a field.
struct PartLoss {
  std::string field, value;
  double loss = 0;
  int64_t samples = 0;
};

/// One evaluation.
struct Entry {
  int64_t iteration = 0;  ///< training iterations done by then
  int64_t epoch = 0;
  double loss = 0;
  int64_t samples = 0;
  std::vector<PartLoss> parts;
};

/// All evaluations of a run, in order.
class LossHistory {
 public:
  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  const std::vector<Entry>& entries() const { return entries_; }

  /// {"summary": one object for each evaluation, "detail": the same evaluations by field and value}
  std::string json() const;
  std::vector<Curve> curves() const;  ///< the mean first, then each field's values

  gantry::State state() const;
  static LossHistory from(const gantry::State& state);

 private:
  std::vector<Entry> entries_;
};

}  // namespace val_loss
