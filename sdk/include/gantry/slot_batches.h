#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "gantry/export.h"
#include "gantry/optimizer.h"

namespace gantry {

/// Slots that LibTorch's fused and _foreach_ operators take in one call: of one group, one dtype and one device, and
/// all at their first step or none. The lists go together, item by item.
struct SlotBatch {
  int64_t group = 0;
  bool first = false;  ///< none of them had state before this step
  std::vector<Slot*> slots;
  std::vector<at::Tensor> parameters, gradients;
  std::vector<std::vector<at::Tensor>> state;  ///< a list for each of Optimizer::state_names()
};

/// Sorts an optimizer's slots into batches, anew at each step. Keep one: it holds its memory from step to step, but no
/// tensor.
///   batches_.for_each(slots, [](Slot& slot) { slot.state[0] = at::zeros_like(slot.parameter); },
///                     [&](SlotBatch& batch) { ...; });
class GANTRY_API SlotBatches final {
 public:
  /// `start(Slot&)` sets the state of a slot at its first step, `update(SlotBatch&)` steps a whole batch. Slots without
  /// a gradient are left out. Throws Error for a sparse gradient.
  template <class Start, class Update>
  void for_each(std::span<Slot> slots, Start&& start, Update&& update) {
    collect(slots);
    for (Entry& entry : entries_) {
      if (entry.batch.slots.empty()) continue;
      if (entry.batch.first) {
        for (Slot* slot : entry.batch.slots) start(*slot);
      }
      collect_state(entry.batch);
      update(entry.batch);
    }
    clear();
  }

 private:
  struct Entry {
    at::ScalarType dtype;
    at::Device device;
    SlotBatch batch;
  };
  void collect(std::span<Slot> slots);
  static void collect_state(SlotBatch& batch);
  void clear();
  std::vector<Entry> entries_;
};

/// Adds 1 to each: PyTorch's "step", a 0-dim float32 tensor per parameter.
GANTRY_API void count_up(const std::vector<at::Tensor>& steps);

}  // namespace gantry
