#include "gantry/metric.h"

#include <charconv>
#include <system_error>

#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"

namespace gantry {

Metric::~Metric() = default;

namespace {

// "name.2" of a list of tensors called "name"; nullptr where the key is not written so or there is no such list.
const at::Tensor* find_element(const Batch& batch, const Outputs& outputs, std::string_view key) {
  const std::size_t dot = key.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  std::size_t index = 0;
  const char* end = key.data() + key.size();
  const auto [stop, problem] = std::from_chars(key.data() + dot + 1, end, index);
  if (problem != std::errc() || stop != end) return nullptr;
  const std::string_view name = key.substr(0, dot);
  const Value* value = outputs.has(name) ? outputs.find(name) : batch.find(name);
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<at::Tensor>>(value);
  if (list == nullptr) return nullptr;
  if (index >= list->size()) {
    throw Error(
        cat("'", key, "' asks for number ", index, ", counted from 0, of '", name, "', which is ", value_text(*value)));
  }
  return &(*list)[index];
}

}  // namespace

const at::Tensor& find_tensor(const Batch& batch, const Outputs& outputs, std::string_view key) {
  if (outputs.has(key)) return outputs.tensor(key);
  if (batch.has(key)) return batch.tensor(key);
  if (const at::Tensor* element = find_element(batch, outputs, key)) return *element;
  throw Error(cat("neither the model's outputs nor the batch have '", key, "': the outputs have ", names_text(outputs),
                  "; the batch has ", names_text(batch)));
}

}  // namespace gantry
