#include "cpu_scalar.h"

namespace gantry {

double read_cpu_scalar(const at::Tensor& value) {
  const void* data = value.const_data_ptr();
  switch (value.scalar_type()) {
    case at::kFloat:
      return *static_cast<const float*>(data);
    case at::kDouble:
      return *static_cast<const double*>(data);
    case at::kHalf:
      return static_cast<float>(*static_cast<const c10::Half*>(data));
    case at::kBFloat16:
      return static_cast<float>(*static_cast<const c10::BFloat16*>(data));
    case at::kLong:
      return static_cast<double>(*static_cast<const int64_t*>(data));
    case at::kInt:
      return *static_cast<const int32_t*>(data);
    case at::kBool:
      return *static_cast<const bool*>(data) ? 1 : 0;
    default:
      return value.item<double>();
  }
}

}  // namespace gantry
