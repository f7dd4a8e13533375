#include "gantry/slot_batches.h"

#include <ATen/ops/_foreach_add.h>

#include <algorithm>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {

void SlotBatches::collect(std::span<Slot> slots) {
  clear();
  for (Slot& slot : slots) {
    if (!slot.gradient.defined()) continue;
    if (slot.gradient.is_sparse())
      throw Error(
          cat("parameter '", slot.name, "' has a sparse gradient, which this optimizer does not take: use SparseAdam"));
    const bool first = !slot.state.empty() && !slot.state.front().defined();
    const at::ScalarType dtype = slot.parameter.scalar_type();
    const at::Device device = slot.parameter.device();
    auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
      return e.batch.group == slot.group && e.batch.first == first && e.dtype == dtype && e.device == device;
    });
    if (entry == entries_.end()) {
      entry = entries_.insert(entry, Entry{dtype, device, {}});
      entry->batch.group = slot.group;
      entry->batch.first = first;
    }
    entry->batch.slots.push_back(&slot);
    entry->batch.parameters.push_back(slot.parameter);
    entry->batch.gradients.push_back(slot.gradient);
  }
}

void SlotBatches::collect_state(SlotBatch& batch) {
  batch.state.resize(batch.slots.front()->state.size());
  for (std::size_t i = 0; i < batch.state.size(); ++i) {
    for (const Slot* slot : batch.slots) batch.state[i].push_back(slot->state[i]);
  }
}

void SlotBatches::clear() {
  for (Entry& entry : entries_) {
    entry.batch.slots.clear();
    entry.batch.parameters.clear();
    entry.batch.gradients.clear();
    for (auto& list : entry.batch.state) list.clear();
  }
}

void count_up(const std::vector<at::Tensor>& steps) {
  if (!steps.front().is_cpu()) return at::_foreach_add_(steps, 1);
  // The operator would cost more than the sums.
  for (const at::Tensor& step : steps) *step.mutable_data_ptr<float>() += 1;
}

}  // namespace gantry
