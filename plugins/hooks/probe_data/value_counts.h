#pragma once

#include <ATen/core/Tensor.h>
#include <gantry/state.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace probe_data {

/// How often values came, over a run: integers each by itself as long as they are few, other numbers in bins whose
/// edges are the same for ever, eight to an octave, so that counts of different times add up.
class ValueCounts {
 public:
  /// `count` values from `low` to `high`; both the same for a value that is counted by itself.
  struct Bar {
    double low = 0, high = 0, count = 0;
  };

  void add(const at::Tensor& values);  ///< real numbers, on the CPU
  bool exact() const { return exact_; }
  int64_t total() const;  ///< of the finite values
  int64_t not_finite() const { return not_finite_; }
  double smallest() const { return smallest_; }
  double largest() const { return largest_; }
  std::vector<Bar> bars() const;  ///< ascending, none empty
  /// For a picture: each value by itself where those are at most `most`; otherwise `most` bars of one width.
  std::vector<Bar> bars_to_show(std::size_t most) const;

  gantry::State state() const;
  static ValueCounts from(const gantry::State& state);

 private:
  void count(int64_t value, int64_t times);
  void add_numbers(const at::Tensor& values);
  void use_bins();

  bool exact_ = true;
  std::map<int64_t, int64_t> counts_;  // by value, or by bin
  int64_t not_finite_ = 0;
  double smallest_ = 0, largest_ = 0;
};

}  // namespace probe_data
