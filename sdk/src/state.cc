#include "gantry/state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"

namespace gantry {

State::State() = default;
State::State(const State&) = default;
State::State(State&&) noexcept = default;
State& State::operator=(const State&) = default;
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

void State::add(Leaf leaf) {
  if (leaf.path.empty()) throw std::logic_error("a leaf of a state needs a path");
  if (!leaf.value.defined()) throw std::logic_error(cat("the state's leaf '", leaf.path, "' is an undefined tensor"));
  const auto place = std::lower_bound(by_path_.begin(), by_path_.end(), leaf.path,
                                      [&](std::size_t i, const std::string& path) { return leaves_[i].path < path; });
  if (place != by_path_.end() && leaves_[*place].path == leaf.path) {
    throw std::logic_error(cat("the state has a leaf '", leaf.path, "' already"));
  }
  by_path_.insert(place, leaves_.size());
  leaves_.push_back(std::move(leaf));
}

const State::Leaf* State::find(std::string_view path) const {
  const auto place = std::lower_bound(by_path_.begin(), by_path_.end(), path,
                                      [&](std::size_t i, std::string_view p) { return leaves_[i].path < p; });
  return place != by_path_.end() && leaves_[*place].path == path ? &leaves_[*place] : nullptr;
}

const State::Leaf& State::leaf(std::string_view path) const {
  const Leaf* found = find(path);
  if (found == nullptr) throw Error(cat("the saved state has no '", path, "'"));
  return *found;
}

void State::set(std::string_view path, at::Tensor value) { add({std::string(path), std::move(value), {}, {}}); }

void State::set_shard(std::string_view path, at::Tensor value, std::vector<int64_t> global_shape,
                      std::vector<int64_t> offset) {
  const auto dims = static_cast<std::size_t>(value.defined() ? value.dim() : 0);
  if (global_shape.size() != dims || offset.size() != dims) {
    throw std::logic_error(cat("the state's leaf '", path, "' has ", dims, " dimensions, its whole ",
                               global_shape.size(), ", its offset ", offset.size()));
  }
  for (std::size_t d = 0; d < dims; ++d) {
    if (offset[d] >= 0 && offset[d] + value.size(static_cast<int64_t>(d)) <= global_shape[d]) continue;
    throw std::logic_error(cat("the state's leaf '", path, "' of shape ", shape_text(value.sizes()), " at ",
                               shape_text(offset), " reaches out of its whole of shape ", shape_text(global_shape)));
  }
  add({std::string(path), std::move(value), std::move(global_shape), std::move(offset)});
}

void State::set_int(std::string_view path, int64_t value) { set(path, at::scalar_tensor(value, at::kLong)); }

void State::set_double(std::string_view path, double value) { set(path, at::scalar_tensor(value, at::kDouble)); }

void State::set_text(std::string_view path, std::string_view value) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(value.size())}, at::kByte);
  if (!value.empty()) std::memcpy(bytes.mutable_data_ptr(), value.data(), value.size());
  set(path, std::move(bytes));
}

void State::merge(std::string_view prefix, const State& child) {
  leaves_.reserve(leaves_.size() + child.leaves_.size());
  for (const Leaf& leaf : child.leaves_) add({cat(prefix, "/", leaf.path), leaf.value, leaf.global_shape, leaf.offset});
}

bool State::has(std::string_view path) const { return find(path) != nullptr; }

const at::Tensor& State::tensor(std::string_view path) const { return leaf(path).value; }

int64_t State::integer(std::string_view path) const {
  const at::Tensor& value = tensor(path);
  if (value.scalar_type() != at::kLong || value.dim() != 0) {
    throw Error(cat("'", path, "' of the saved state should be a single int64; it is ", tensor_text(value)));
  }
  return value.item<int64_t>();
}

double State::number(std::string_view path) const {
  const at::Tensor& value = tensor(path);
  if (value.scalar_type() != at::kDouble || value.dim() != 0) {
    throw Error(cat("'", path, "' of the saved state should be a single float64; it is ", tensor_text(value)));
  }
  return value.item<double>();
}

std::string State::text(std::string_view path) const {
  const at::Tensor& value = tensor(path);
  if (value.scalar_type() != at::kByte || value.dim() != 1) {
    throw Error(
        cat("'", path, "' of the saved state should be text, uint8 of one dimension; it is ", tensor_text(value)));
  }
  const at::Tensor bytes = value.cpu().contiguous();
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel())};
}

State State::child(std::string_view prefix) const {
  State result;
  for (const Leaf& leaf : leaves_) {
    const std::string_view path = leaf.path;
    if (path.size() <= prefix.size() + 1 || !path.starts_with(prefix) || path[prefix.size()] != '/') continue;
    result.add({std::string(path.substr(prefix.size() + 1)), leaf.value, leaf.global_shape, leaf.offset});
  }
  return result;
}

namespace {

// Of the whole: how a tensor is cut up is no difference.
at::IntArrayRef whole_shape(const State::Leaf& leaf) {
  return leaf.global_shape.empty() ? leaf.value.sizes() : at::IntArrayRef(leaf.global_shape);
}

std::string whole_text(const State::Leaf& leaf) {
  return dtype_text(leaf.value.scalar_type()) + " " + shape_text(whole_shape(leaf));
}

}  // namespace

std::vector<std::string> state_differences(const State& saved, const State& expected) {
  std::vector<const State::Leaf*> saved_by_path;
  saved_by_path.reserve(saved.leaves().size());
  for (const State::Leaf& leaf : saved.leaves()) saved_by_path.push_back(&leaf);
  std::sort(saved_by_path.begin(), saved_by_path.end(), [](const auto* a, const auto* b) { return a->path < b->path; });

  std::vector<std::string> lines;
  for (const State::Leaf& leaf : expected.leaves()) {
    const auto place = std::lower_bound(saved_by_path.begin(), saved_by_path.end(), leaf.path,
                                        [](const auto* a, const std::string& path) { return a->path < path; });
    if (place == saved_by_path.end() || (*place)->path != leaf.path) {
      lines.push_back("missing: " + leaf.path);
    } else if ((*place)->value.scalar_type() != leaf.value.scalar_type() || whole_shape(**place) != whole_shape(leaf)) {
      lines.push_back(cat(leaf.path, ": ", whole_text(**place), " in the checkpoint, ", whole_text(leaf), " here"));
    }
  }
  for (const State::Leaf& leaf : saved.leaves()) {
    if (!expected.has(leaf.path)) lines.push_back("unexpected: " + leaf.path);
  }
  return lines;
}

}  // namespace gantry
