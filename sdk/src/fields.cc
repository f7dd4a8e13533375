#include "gantry/fields.h"

#include <algorithm>
#include <limits>

#include "cpu_scalar.h"
#include "gantry/error.h"
#include "gantry/state.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"
#include "ordered_paths.h"

namespace gantry {

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::train:
      return "train";
    case Mode::eval:
      return "eval";
    case Mode::test:
      return "test";
  }
  return "unknown";
}

Fields::Fields() = default;
Fields::Fields(std::initializer_list<std::pair<std::string, Value>> entries) {
  entries_.reserve(entries.size());
  for (const auto& [name, value] : entries) set(name, value);
}
Fields::Fields(const Fields&) = default;
Fields::Fields(Fields&&) noexcept = default;
Fields& Fields::operator=(const Fields&) = default;
Fields& Fields::operator=(Fields&&) noexcept = default;
Fields::~Fields() = default;

void Fields::set(std::string_view name, Value value) {
  if (Value* old = find(name)) {
    *old = std::move(value);
  } else {
    entries_.emplace_back(name, std::move(value));
  }
}

namespace {

// What a batch of images of several sizes needs.
std::string differing_shapes(const Value& value) {
  const auto* list = std::get_if<std::vector<at::Tensor>>(&value);
  if (list == nullptr) return "";
  for (std::size_t i = 1; i < list->size(); ++i) {
    if ((*list)[i].sizes() == (*list)[0].sizes()) continue;
    return cat(" of different shapes, ", tensor_text((*list)[0]), " in sample 0 and ", tensor_text((*list)[i]),
               " in sample ", i, " of the batch: add a transform that makes them alike (Resize, CenterCrop)");
  }
  return "";
}

}  // namespace

const Value* Fields::find(std::string_view name) const {
  for (const auto& entry : entries_) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

Value* Fields::find(std::string_view name) { return const_cast<Value*>(std::as_const(*this).find(name)); }

void Fields::erase(std::string_view name) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first == name; });
}

const at::Tensor& Fields::tensor(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) throw Error(cat("there is no '", name, "' here, only: ", names_text(*this)));
  const auto* tensor = std::get_if<at::Tensor>(value);
  if (tensor == nullptr) {
    throw Error(cat("'", name, "' should be a tensor; it is ", value_text(*value), differing_shapes(*value)));
  }
  if (!tensor->defined()) throw Error(cat("'", name, "' is an undefined tensor: it was named but never computed"));
  return *tensor;
}

void Scalars::set(std::string_view name, double value) {
  for (auto& entry : entries_) {
    if (entry.first == name) {
      entry.second = value;
      return;
    }
  }
  entries_.emplace_back(name, value);
}

const double* Scalars::find(std::string_view name) const {
  for (const auto& entry : entries_) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

void MeanMeter::add(const at::Tensor& value, double weight) {
  if (!value.defined() || value.dim() != 0) {
    throw Error(cat("a mean takes single numbers, tensors of no dimension; this one is ", value_text(value)));
  }
  if (value.is_cpu()) {
    add(read_cpu_scalar(value), weight);
    return;
  }
  if (weight == 0) return;
  weight_ += weight;
  if (!device_sum_.defined()) {
    device_sum_ = value.detach().to(at::kDouble).mul(weight);
  } else {
    if (device_sum_.device() != value.device()) device_sum_ = device_sum_.to(value.device());  // after load_state
    device_sum_.add_(value.detach().to(device_sum_.options()), weight);
  }
}

void MeanMeter::add(double value, double weight) {
  // What a batch without samples yields is no number at all, and NaN times zero would stay NaN.
  if (weight == 0) return;
  sum_ += value * weight;
  weight_ += weight;
}

double MeanMeter::mean() const {
  if (weight_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return (sum_ + (device_sum_.defined() ? device_sum_.item<double>() : 0.0)) / weight_;
}

void MeanMeter::reset() { *this = MeanMeter(); }

void FieldMeans::add(const Fields& fields, double weight) {
  // Names come in the same order nearly always: the search is for the time when there is one more.
  std::size_t at = 0;
  for (const auto& [name, value] : fields.entries()) {
    const auto* tensor = std::get_if<at::Tensor>(&value);
    const auto* number = std::get_if<double>(&value);
    if (!(tensor != nullptr && tensor->defined() && tensor->dim() == 0) && number == nullptr) continue;
    if (at >= entries_.size() || entries_[at].first != name) {
      at = 0;
      while (at < entries_.size() && entries_[at].first != name) ++at;
      if (at == entries_.size()) entries_.emplace_back(name, MeanMeter{});
    }
    if (tensor != nullptr)
      entries_[at].second.add(*tensor, weight);
    else
      entries_[at].second.add(*number, weight);
    ++at;
  }
}

const MeanMeter* FieldMeans::find(std::string_view name) const {
  for (const auto& entry : entries_) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

void FieldMeans::reset() {
  for (auto& entry : entries_) entry.second.reset();
}

State FieldMeans::state() const {
  State state;
  std::size_t index = 0;
  for (const auto& [name, mean] : entries_) {
    const std::string path = order_prefix(index++) + name;
    state.set_double(path + "/sum", mean.sum_);
    state.set_double(path + "/weight", mean.weight_);
    if (mean.device_sum_.defined()) state.set(path + "/device_sum", mean.device_sum_);
  }
  return state;
}

void FieldMeans::load_state(const State& state) {
  entries_.clear();
  constexpr std::string_view kSum = "/sum";
  for (const std::string& leaf : ordered_paths(state)) {
    if (!leaf.ends_with(kSum)) continue;
    const std::string path = leaf.substr(0, leaf.size() - kSum.size());
    MeanMeter mean;
    mean.sum_ = state.number(leaf);
    mean.weight_ = state.number(path + "/weight");
    if (state.has(path + "/device_sum")) mean.device_sum_ = state.tensor(path + "/device_sum").clone();
    entries_.emplace_back(without_order_prefix(path), std::move(mean));
  }
}

}  // namespace gantry
