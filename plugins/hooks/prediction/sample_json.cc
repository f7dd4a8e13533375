#include "sample_json.h"

#include <charconv>
#include <cmath>

namespace prediction {

namespace {

template <class Number>
void append_number(Number number, std::string& out) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) {
      out += "null";
      return;
    }
  }
  char text[64];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

template <class Number>
void append_list(const Number*& at, at::IntArrayRef shape, std::string& out) {
  if (shape.empty()) return append_number(*at++, out);
  out += '[';
  for (int64_t i = 0; i < shape.front(); ++i) {
    if (i > 0) out += ", ";
    append_list(at, shape.slice(1), out);
  }
  out += ']';
}

template <class Number>
std::string list(const at::Tensor& values) {
  const at::Tensor whole = values.contiguous();
  std::string out;
  const auto* at = whole.const_data_ptr<Number>();
  append_list(at, whole.sizes(), out);
  return out;
}

}  // namespace

std::string sample_json(const at::Tensor& sample) {
  const at::ScalarType dtype = sample.scalar_type();
  if (dtype == at::kDouble) return list<double>(sample);
  if (at::isFloatingType(dtype)) return list<float>(sample.to(at::kFloat));
  return list<int64_t>(sample.to(at::kLong));
}

}  // namespace prediction
