#include "value_counts.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

namespace probe_data {

namespace {

constexpr std::size_t kMostValues = 1024;
constexpr int kBinsPerOctave = 8;
constexpr int kSmallestExponent = -64;  // what is smaller counts as 0

int64_t bin_of(double value) {
  const double size = std::abs(value);
  if (size < std::ldexp(1, kSmallestExponent)) return 0;
  const auto bin = 1 + static_cast<int64_t>(std::floor((std::log2(size) - kSmallestExponent) * kBinsPerOctave));
  return value < 0 ? -bin : bin;
}

double edge(int64_t bin) { return std::exp2(static_cast<double>(bin) / kBinsPerOctave + kSmallestExponent); }

ValueCounts::Bar bar_of(int64_t bin, int64_t count) {
  const auto times = static_cast<double>(count);
  if (bin > 0) return {edge(bin - 1), edge(bin), times};
  if (bin < 0) return {-edge(-bin), -edge(-bin - 1), times};
  return {0, 0, times};
}

}  // namespace

void ValueCounts::count(int64_t value, int64_t times) { counts_[value] += times; }

int64_t ValueCounts::total() const {
  int64_t sum = 0;
  for (const auto& entry : counts_) sum += entry.second;
  return sum;
}

void ValueCounts::use_bins() {
  if (!exact_) return;
  exact_ = false;
  for (const auto& [value, times] : std::exchange(counts_, {})) count(bin_of(static_cast<double>(value)), times);
}

void ValueCounts::add(const at::Tensor& values) {
  if (values.numel() == 0) return;
  if (at::isFloatingType(values.scalar_type())) use_bins();
  if (!exact_) return add_numbers(values);
  const at::Tensor integers = values.to(at::kLong).contiguous();
  const auto* value = integers.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < integers.numel(); ++i) {
    const auto number = static_cast<double>(value[i]);
    smallest_ = counts_.empty() ? number : std::min(smallest_, number);
    largest_ = counts_.empty() ? number : std::max(largest_, number);
    count(value[i], 1);
    if (counts_.size() <= kMostValues) continue;
    use_bins();
    return add_numbers(integers.flatten().narrow(0, i + 1, integers.numel() - i - 1));
  }
}

void ValueCounts::add_numbers(const at::Tensor& values) {
  const at::Tensor numbers = values.to(at::kDouble).contiguous();
  const auto* number = numbers.const_data_ptr<double>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (!std::isfinite(number[i])) {
      ++not_finite_;
      continue;
    }
    smallest_ = counts_.empty() ? number[i] : std::min(smallest_, number[i]);
    largest_ = counts_.empty() ? number[i] : std::max(largest_, number[i]);
    count(bin_of(number[i]), 1);
  }
}

std::vector<ValueCounts::Bar> ValueCounts::bars() const {
  std::vector<Bar> bars;
  for (const auto& [value, times] : counts_) {
    const auto number = static_cast<double>(value);
    bars.push_back(exact_ ? Bar{number, number, static_cast<double>(times)} : bar_of(value, times));
  }
  return bars;
}

std::vector<ValueCounts::Bar> ValueCounts::bars_to_show(std::size_t most) const {
  std::vector<Bar> all = bars();
  if (exact_ && all.size() <= most) return all;
  if (all.empty()) return {};
  const double range = largest_ - smallest_;
  if (!(range > 0) || !std::isfinite(range)) return {{smallest_, largest_, static_cast<double>(total())}};
  const double width = range / static_cast<double>(most);
  std::vector<Bar> shown(most);
  for (std::size_t i = 0; i < most; ++i)
    shown[i] = {smallest_ + static_cast<double>(i) * width, smallest_ + static_cast<double>(i + 1) * width, 0};
  const auto place = [&](double value) {
    return std::clamp<double>(std::floor((value - smallest_) / width), 0, static_cast<double>(most - 1));
  };
  for (Bar bar : all) {
    bar.low = std::clamp(bar.low, smallest_, largest_);
    bar.high = std::clamp(bar.high, smallest_, largest_);
    const auto first = static_cast<std::size_t>(place(bar.low)), last = static_cast<std::size_t>(place(bar.high));
    for (std::size_t i = first; i <= last; ++i) {
      const double overlap = std::min(bar.high, shown[i].high) - std::max(bar.low, shown[i].low);
      const double share = bar.high > bar.low ? std::max(0.0, overlap) / (bar.high - bar.low) : 1;
      shown[i].count += bar.count * (first == last ? 1 : share);
    }
  }
  return shown;
}

gantry::State ValueCounts::state() const {
  const auto size = static_cast<int64_t>(counts_.size());
  at::Tensor keys = at::empty({size}, at::kLong), times = at::empty({size}, at::kLong);
  int64_t i = 0;
  for (const auto& [key, number] : counts_) {
    keys.mutable_data_ptr<int64_t>()[i] = key;
    times.mutable_data_ptr<int64_t>()[i++] = number;
  }
  gantry::State state;
  state.set("keys", keys);
  state.set("counts", times);
  state.set_int("exact", exact_ ? 1 : 0);
  state.set_int("not_finite", not_finite_);
  state.set_double("smallest", smallest_);
  state.set_double("largest", largest_);
  return state;
}

ValueCounts ValueCounts::from(const gantry::State& state) {
  ValueCounts counts;
  const at::Tensor keys = state.tensor("keys").to(at::kLong).contiguous();
  const at::Tensor times = state.tensor("counts").to(at::kLong).contiguous();
  for (int64_t i = 0; i < std::min(keys.numel(), times.numel()); ++i)
    counts.count(keys.const_data_ptr<int64_t>()[i], times.const_data_ptr<int64_t>()[i]);
  counts.exact_ = state.integer("exact") != 0;
  counts.not_finite_ = state.integer("not_finite");
  counts.smallest_ = state.number("smallest");
  counts.largest_ = state.number("largest");
  return counts;
}

}  // namespace probe_data
