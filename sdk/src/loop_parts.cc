#include "loop_parts.h"

namespace gantry {

void move_to(Batch& batch, at::Device device) {
  if (device.is_cpu()) return;
  for (auto& [name, value] : batch.entries())
    if (auto* tensor = std::get_if<at::Tensor>(&value)) *tensor = tensor->to(device, /*non_blocking=*/true);
}

double output_weight(const Outputs& outputs, double otherwise) {
  const Value* value = outputs.find("weight");
  if (value == nullptr) return otherwise;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* count = std::get_if<int64_t>(value)) return static_cast<double>(*count);
  throw Error(
      "the model's output \"weight\" must be a number (double or int64_t), so that no step waits for the device");
}

bool next_batch(const Solver::Impl& s, Loader& loader, Batch& batch) {
  try {
    return loader.next(batch);
  } catch (const ComponentError& error) {
    ComponentError::Origin origin = error.origin();
    origin.mode = mode_name(s.mode());
    origin.iteration = s.total_iter[static_cast<int>(s.mode())];
    throw ComponentError(std::move(origin), error.cause());
  }
}

Scalars means_of(const Frame& frame) {
  Scalars values;
  for (const auto& [name, mean] : frame.means.entries()) values.set(name, mean.mean());
  return values;
}

}  // namespace gantry
