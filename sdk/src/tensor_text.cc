#include "gantry/tensor_text.h"

#include "gantry/text.h"

namespace gantry {

std::string dtype_text(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kHalf:
      return "float16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kBFloat16:
      return "bfloat16";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(dtype);
  }
}

std::string shape_text(at::IntArrayRef shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

std::string tensor_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return dtype_text(tensor.scalar_type()) + " " + shape_text(tensor.sizes());
}

std::string value_text(const Value& value) {
  struct Text {
    std::string operator()(const at::Tensor& tensor) const {
      return tensor.defined() ? "a " + tensor_text(tensor) + " tensor" : "an undefined tensor";
    }
    std::string operator()(double) const { return "a number"; }
    std::string operator()(int64_t) const { return "an integer"; }
    std::string operator()(const std::vector<std::string>& list) const {
      return cat("a list of ", list.size(), list.size() == 1 ? " string" : " strings");
    }
    std::string operator()(const std::vector<at::Tensor>& list) const {
      return cat("a list of ", list.size(), list.size() == 1 ? " tensor" : " tensors");
    }
  };
  return std::visit(Text(), value);
}

std::string names_text(const Fields& fields) {
  std::string text;
  for (const auto& [name, value] : fields.entries()) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "nothing" : text;
}

}  // namespace gantry
