#include "npy.h"

#include <gantry/text.h>

namespace probe_data {

namespace {

const char* numpy_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBool:
      return "|b1";
    case at::kByte:
      return "|u1";
    case at::kChar:
      return "|i1";
    case at::kShort:
      return "<i2";
    case at::kInt:
      return "<i4";
    case at::kLong:
      return "<i8";
    case at::kHalf:
      return "<f2";
    case at::kFloat:
      return "<f4";
    case at::kDouble:
      return "<f8";
    case at::kComplexFloat:
      return "<c8";
    case at::kComplexDouble:
      return "<c16";
    default:
      return nullptr;
  }
}

}  // namespace

std::string encode_npy(const at::Tensor& tensor) {
  at::Tensor value = tensor.contiguous();
  if (numpy_type(value.scalar_type()) == nullptr) value = value.to(at::kFloat);
  std::string shape;
  for (const int64_t size : value.sizes()) shape += gantry::cat(size, ",");
  std::string header = gantry::cat("{'descr': '", numpy_type(value.scalar_type()),
                                   "', 'fortran_order': False, 'shape': (", shape, "), }");
  // The data begin at a multiple of 64 bytes; the header ends with a newline. Version 2 has four bytes for its length,
  // for tensors of absurdly many dimensions.
  constexpr std::size_t kBegin = 12;
  header.append(63 - (kBegin + header.size()) % 64, ' ') += '\n';
  std::string bytes("\x93NUMPY\x02\x00", 8);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(header.size() >> shift & 0xFF);
  bytes += header;
  bytes.append(static_cast<const char*>(value.const_data_ptr()), value.nbytes());
  return bytes;
}

}  // namespace probe_data
