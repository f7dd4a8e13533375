#include "numbers.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gantry/text.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace stop_and_go {
namespace {

template <class T>
constexpr bool is_floating = !std::is_integral_v<T>;

std::string index_text(int64_t flat, at::IntArrayRef shape) {
  std::vector<std::string> parts(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; flat /= shape[d]) parts[d] = gantry::cat(flat % shape[d]);
  return parts.empty() ? "" : gantry::cat("[", gantry::join(parts, ", "), "]");
}

template <class T>
std::string number_text(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (is_floating<T>)
    return gantry::number_text(static_cast<double>(value));
  else
    return std::to_string(value);
}

/// Numbers of the same order as the floating-point ones, neighbours one apart.
template <class T>
int64_t ordered_bits(T value) {
  using Bits = std::conditional_t<sizeof(T) == 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  Bits bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >= 0 ? int64_t{bits} : int64_t{std::numeric_limits<Bits>::min()} - int64_t{bits};
}

template <class T>
std::optional<int64_t> ulps_between(T a, T b) {
  if constexpr (is_floating<T>) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    if (!std::isfinite(x) || !std::isfinite(y)) return std::nullopt;
    int64_t distance = 0;
    if (__builtin_sub_overflow(ordered_bits(a), ordered_bits(b), &distance)) return std::nullopt;
    return std::abs(distance);
  }
  return std::nullopt;
}

template <class T>
std::optional<NumberDifference> compare(const at::Tensor& expected, const at::Tensor& actual, double tolerance) {
  const T* x = expected.const_data_ptr<T>();
  const T* y = actual.const_data_ptr<T>();
  const int64_t size = expected.numel();
  double allowed = 0;
  if constexpr (is_floating<T>) {
    for (int64_t i = 0; tolerance > 0 && i < size; ++i)
      if (const double magnitude = std::abs(static_cast<double>(x[i])); std::isfinite(magnitude))
        allowed = std::max(allowed, tolerance * magnitude);
  }
  NumberDifference difference;
  difference.of = size;
  for (int64_t i = 0; i < size; ++i) {
    if (std::memcmp(x + i, y + i, sizeof(T)) == 0) continue;
    const double a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
    const double apart = std::abs(a - b);  // NaN where either is, or both are infinite
    if (tolerance > 0 && is_floating<T> && apart <= allowed && std::isfinite(apart)) continue;
    if (std::isfinite(apart)) {
      difference.max_absolute = std::max(difference.max_absolute, apart);
      if (a != 0) difference.max_relative = std::max(difference.max_relative, apart / std::abs(a));
    }
    if (difference.count++ > 0) continue;
    difference.index = index_text(i, expected.sizes());
    difference.expected = number_text(x[i]);
    difference.actual = number_text(y[i]);
    difference.ulps = ulps_between(x[i], y[i]);
  }
  return difference.count > 0 ? std::optional(difference) : std::nullopt;
}

std::optional<NumberDifference> compare_bytes(const at::Tensor& expected, const at::Tensor& actual) {
  const auto* x = static_cast<const unsigned char*>(expected.const_data_ptr());
  const auto* y = static_cast<const unsigned char*>(actual.const_data_ptr());
  const std::size_t size = expected.nbytes();
  const std::size_t first = static_cast<std::size_t>(std::mismatch(x, x + size, y).first - x);
  if (first == size) return std::nullopt;
  NumberDifference difference;
  difference.count = 1;
  difference.of = expected.numel();
  difference.index = gantry::cat("byte ", first);
  difference.expected = gantry::cat(int{x[first]});
  difference.actual = gantry::cat(int{y[first]});
  return difference;
}

}  // namespace

std::string NumberDifference::text() const {
  std::string text = gantry::cat(index.empty() ? "" : gantry::cat("at ", index, ": "), expected, " and ", actual);
  if (of > 1) text += gantry::cat("; ", count, " of ", of, " numbers differ");
  if (max_absolute > 0) {
    text += gantry::cat(", by ", of > 1 ? "at most " : "", gantry::number_text(max_absolute));
    if (max_relative > 0) text += gantry::cat(" (relative ", gantry::short_number(max_relative), ")");
  }
  if (ulps.has_value()) text += gantry::cat("; ", of > 1 ? "the first by " : "", *ulps, *ulps == 1 ? " ulp" : " ulps");
  return text;
}

std::optional<NumberDifference> number_difference(const at::Tensor& expected, const at::Tensor& actual,
                                                  double tolerance) {
  const at::Tensor x = expected.contiguous(), y = actual.contiguous();
  switch (x.scalar_type()) {
    case at::kFloat:
      return compare<float>(x, y, tolerance);
    case at::kDouble:
      return compare<double>(x, y, tolerance);
    case at::kHalf:
      return compare<c10::Half>(x, y, tolerance);
    case at::kBFloat16:
      return compare<c10::BFloat16>(x, y, tolerance);
    case at::kLong:
      return compare<int64_t>(x, y, tolerance);
    case at::kInt:
      return compare<int32_t>(x, y, tolerance);
    case at::kByte:
      return compare<uint8_t>(x, y, tolerance);
    case at::kBool:
      return compare<bool>(x, y, tolerance);
    default:
      return compare_bytes(x, y);
  }
}

}  // namespace stop_and_go
