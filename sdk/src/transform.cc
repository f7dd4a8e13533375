#include "gantry/transform.h"

#include <stdexcept>

#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"

namespace gantry {

Transform::~Transform() = default;
PointwiseTransform::~PointwiseTransform() = default;

void Transform::apply(Sample&, CounterRng&) const {
  throw std::logic_error("a transform has to implement apply or apply_batch; this one implements neither");
}

namespace {

[[noreturn]] void refuse_length(const std::string& name, const Value& value, int64_t size) {
  throw Error(cat("a batch of ", size, " samples cannot be taken apart: '", name, "' is ", value_text(value),
                  " and should have ", size, " along its first dimension"));
}

// Numbers belong to the batch as a whole and are left out.
Sample unstack(const Batch& batch, int64_t i) {
  Sample sample;
  sample.entries().reserve(batch.entries().size());
  for (const auto& [name, value] : batch.entries()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      if (!tensor->defined() || tensor->dim() == 0 || tensor->size(0) != batch.size()) {
        refuse_length(name, value, batch.size());
      }
      sample.entries().emplace_back(name, tensor->select(0, i));
    } else if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
      if (static_cast<int64_t>(strings->size()) != batch.size()) refuse_length(name, value, batch.size());
      sample.entries().emplace_back(name, std::vector<std::string>{(*strings)[i]});
    } else if (const auto* tensors = std::get_if<std::vector<at::Tensor>>(&value)) {
      if (static_cast<int64_t>(tensors->size()) != batch.size()) refuse_length(name, value, batch.size());
      sample.entries().emplace_back(name, (*tensors)[i]);
    }
  }
  return sample;
}

// Tensors that were a list and that nothing was done to are to be listed again, not stacked, should they be alike.
void keep_untouched_lists(const Batch& batch, std::vector<Sample>& samples) {
  for (const auto& [name, value] : batch.entries()) {
    const auto* list = std::get_if<std::vector<at::Tensor>>(&value);
    if (list == nullptr) continue;
    std::vector<Value*> untouched;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      Value* now = samples[i].find(name);
      const auto* tensor = now == nullptr ? nullptr : std::get_if<at::Tensor>(now);
      if (tensor != nullptr && tensor->is_same((*list)[i])) untouched.push_back(now);
    }
    if (untouched.size() != samples.size()) continue;
    for (std::size_t i = 0; i < samples.size(); ++i) *untouched[i] = std::vector<at::Tensor>{(*list)[i]};
  }
}

}  // namespace

void Transform::apply_batch(Batch& batch, uint64_t seed, uint32_t stream) const {
  std::vector<Sample> samples;
  samples.reserve(batch.ids.size());
  for (int64_t i = 0; i < batch.size(); ++i) {
    samples.push_back(unstack(batch, i));
    CounterRng rng(seed, static_cast<uint64_t>(batch.first_position + i), stream);
    apply(samples.back(), rng);
  }
  keep_untouched_lists(batch, samples);
  Batch result = collate(samples);
  for (auto& [name, value] : batch.entries()) {
    const bool number = std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value);
    if (number && !result.has(name)) result.set(name, std::move(value));
  }
  batch.entries() = std::move(result.entries());
}

}  // namespace gantry
