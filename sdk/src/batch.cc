#include "gantry/batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"

namespace gantry {

Batch::Batch() = default;
Batch::Batch(const Batch&) = default;
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(const Batch&) = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

namespace {

// Calls use(i, value) for the value named `name` of each sample; all have the type of the first sample's.
template <class T, class Use>
void for_each_value(const std::vector<Sample>& samples, const std::string& name, Use use) {
  const Value& first = *samples[0].find(name);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Value* value = samples[i].find(name);
    if (value == nullptr) {
      throw Error(cat("samples of one batch must have the same names: sample ", i, " has ", names_text(samples[i]),
                      ", sample 0 has ", names_text(samples[0])));
    }
    const T* typed = std::get_if<T>(value);
    if (typed == nullptr) {
      throw Error(cat("samples of one batch must have values of the same type: '", name, "' is ", value_text(*value),
                      " in sample ", i, ", ", value_text(first), " in sample 0"));
    }
    use(i, *typed);
  }
}

Value stack_tensors(const std::vector<Sample>& samples, const std::string& name) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(samples.size());
  bool alike = true;
  for_each_value<at::Tensor>(samples, name, [&](std::size_t i, const at::Tensor& tensor) {
    if (!tensor.defined() || (i > 0 && tensor.scalar_type() != tensors[0].scalar_type())) {
      throw Error(cat("samples of one batch must have tensors of the same dtype: '", name, "' is ", tensor_text(tensor),
                      " in sample ", i, ", ", tensor_text(i > 0 ? tensors[0] : tensor), " in sample 0"));
    }
    alike = alike && (i == 0 || tensor.sizes() == tensors[0].sizes());
    tensors.push_back(tensor);
  });
  if (alike) return at::stack(tensors);
  return tensors;
}

template <class T>
at::Tensor stack_numbers(const std::vector<Sample>& samples, const std::string& name, at::ScalarType dtype) {
  at::Tensor result = at::empty({static_cast<int64_t>(samples.size())}, dtype);
  T* out = result.mutable_data_ptr<T>();
  for_each_value<T>(samples, name, [&](std::size_t i, T number) { out[i] = number; });
  return result;
}

template <class T>
std::vector<T> join_lists(const std::vector<Sample>& samples, const std::string& name) {
  std::vector<T> result;
  result.reserve(samples.size());
  for_each_value<std::vector<T>>(samples, name, [&](std::size_t i, const std::vector<T>& list) {
    if (list.size() != 1) {
      throw Error(cat("in a batch a list has one item per sample: '", name, "' is ", value_text(Value(list)),
                      " in sample ", i, ", and should be a list of one"));
    }
    result.push_back(list[0]);
  });
  return result;
}

}  // namespace

Batch collate(const std::vector<Sample>& samples) {
  Batch batch;
  if (samples.empty()) return batch;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].entries().size() == samples[0].entries().size()) continue;
    throw Error(cat("samples of one batch must have the same names: sample ", i, " has ", names_text(samples[i]),
                    ", sample 0 has ", names_text(samples[0])));
  }

  struct Collate {
    const std::vector<Sample>& samples;
    const std::string& name;
    Value operator()(const at::Tensor&) const { return stack_tensors(samples, name); }
    Value operator()(double) const { return stack_numbers<double>(samples, name, at::kDouble); }
    Value operator()(int64_t) const { return stack_numbers<int64_t>(samples, name, at::kLong); }
    Value operator()(const std::vector<std::string>&) const { return join_lists<std::string>(samples, name); }
    Value operator()(const std::vector<at::Tensor>&) const { return join_lists<at::Tensor>(samples, name); }
  };
  for (const auto& [name, first] : samples[0].entries()) {
    batch.entries().emplace_back(name, std::visit(Collate{samples, name}, first));
  }
  return batch;
}

}  // namespace gantry
