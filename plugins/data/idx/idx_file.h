#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::idx {

/// The contents of an IDX file (the format of MNIST), plain or compressed with gzip.
struct IdxFile {
  at::ScalarType dtype = at::kByte;
  std::vector<int64_t> shape;  ///< at least one dimension
  std::vector<uint8_t> bytes;  ///< of the elements, in the machine's order
};

/// Throws gantry::Error that names the file and says what is wrong with it.
IdxFile read_idx(const std::string& path);
/// Reads a file that must be of unsigned bytes and have this many dimensions.
IdxFile read_idx_bytes(const std::string& path, int dimensions);

}  // namespace gantry::idx
