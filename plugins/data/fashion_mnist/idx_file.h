#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::fashion_mnist {

/// The contents of an IDX file of unsigned bytes (the format of MNIST), plain or compressed with gzip.
struct IdxFile {
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

/// Reads a file that must have this many dimensions. Throws gantry::Error that names the file and says what is
/// wrong with it.
IdxFile read_idx(const std::string& path, int dimensions);

}  // namespace gantry::fashion_mnist
