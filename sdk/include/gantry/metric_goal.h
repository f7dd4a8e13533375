#pragma once

#include <string>
#include <string_view>

#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/fields.h"

namespace gantry {

/// By which metric, and which way, evaluations are compared: "+acc@1" or "acc@1", the higher the better; "-loss", the
/// lower. A value.
class GANTRY_API MetricGoal final {
 public:
  MetricGoal() = default;  ///< none
  /// What this key of `config`, a text, says; none where it is empty. ConfigError for a sign without a name.
  MetricGoal(const Config& config, std::string_view key);

  bool none() const { return metric_.empty(); }
  const std::string& metric() const { return metric_; }
  bool lower_is_better() const { return lower_is_better_; }
  std::string text() const;  ///< with its sign; empty where there is none

  /// The metric's value. Throws gantry::Error that lists what there is when it is not among them.
  double value_in(const Scalars& metrics) const;
  /// Whether `value` is better than `other` by more than `least`. NaN never is.
  bool better(double value, double other, double least = 0) const {
    return lower_is_better_ ? other - value > least : value - other > least;
  }

 private:
  std::string key_, metric_;
  bool lower_is_better_ = false;
};

}  // namespace gantry
