#include "flops.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstring>
#include <memory>

namespace gantry {

namespace {

thread_local int64_t* counting = nullptr;  // callbacks are plain functions: this is how they find the counter

at::Tensor input(const at::RecordFunction& fn, std::size_t index) {
  const auto inputs = fn.inputs();
  return index < inputs.size() && inputs[index].isTensor() ? inputs[index].toTensor() : at::Tensor();
}

/// Of the product of [..., m, k] and [..., k, n].
int64_t product_flops(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && b.dim() > 0 ? 2 * a.numel() * b.size(-1) : 0;
}

/// A convolution's work is known per element of its output, which is there only when it has run.
struct PerOutput final : at::ObserverContext {
  explicit PerOutput(int64_t n) : flops(n) {}
  int64_t flops;
};

int64_t flops_of(const at::RecordFunction& fn) {
  const char* name = fn.name();
  const auto is = [name](const char* op) { return std::strcmp(name, op) == 0; };
  if (is("aten::mm") || is("aten::bmm")) return product_flops(input(fn, 0), input(fn, 1));
  if (is("aten::addmm") || is("aten::baddbmm")) return product_flops(input(fn, 1), input(fn, 2));
  if (std::strncmp(name, "aten::_scaled_dot_product_", 26) == 0 && std::strstr(name, "attention") != nullptr) {
    const at::Tensor query = input(fn, 0), key = input(fn, 1), value = input(fn, 2);
    if (!query.defined() || !key.defined() || !value.defined()) return 0;
    return 2 * (query.numel() * key.size(-2) + query.numel() / query.size(-1) * key.size(-2) * value.size(-1));
  }
  return 0;
}

// Inputs exist at an operator's start alone, outputs at its end.
std::unique_ptr<at::ObserverContext> at_start(const at::RecordFunction& fn) {
  if (counting == nullptr) return nullptr;
  if (std::strcmp(fn.name(), "aten::convolution") != 0) {
    *counting += flops_of(fn);
    return nullptr;
  }
  const at::Tensor image = input(fn, 0), weight = input(fn, 1);
  if (!image.defined() || !weight.defined()) return nullptr;
  const int64_t per_element = 2 * (weight.numel() / weight.size(0));
  const auto inputs = fn.inputs();
  if (inputs.size() > 6 && inputs[6].isBool() && inputs[6].toBool()) {  // transposed: per element of its input
    *counting += per_element * image.numel();
    return nullptr;
  }
  return std::make_unique<PerOutput>(per_element);
}

void at_end(const at::RecordFunction& fn, at::ObserverContext* context) {
  const auto* convolution = static_cast<const PerOutput*>(context);
  const auto outputs = fn.outputs();
  if (counting != nullptr && convolution != nullptr && !outputs.empty() && outputs[0].isTensor())
    *counting += convolution->flops * outputs[0].toTensor().numel();
}

}  // namespace

int64_t count_flops(const std::function<void()>& run) {
  int64_t total = 0;
  struct Scope {
    at::CallbackHandle handle;
    int64_t* outer;
    ~Scope() {
      at::removeCallback(handle);
      counting = outer;
    }
  } scope{at::addThreadLocalCallback(at::RecordFunctionCallback(&at_start, &at_end)
                                         .needsInputs(true)
                                         .needsOutputs(true)
                                         .scopes({at::RecordScope::FUNCTION})),
          counting};
  counting = &total;
  run();
  return total;
}

}  // namespace gantry
