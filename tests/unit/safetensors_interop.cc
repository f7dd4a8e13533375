#include <ATen/core/Tensor.h>

#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "gantry/safetensors.h"

/// safetensors_interop IN OUT: reads IN and writes its tensors and metadata to OUT. Matrices named "turned..." are
/// written transposed, from memory that is not contiguous.
int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: safetensors_interop IN OUT\n";
    return 2;
  }
  try {
    const gantry::SafetensorsFile in = gantry::SafetensorsFile::open(argv[1]);
    std::vector<std::pair<std::string, at::Tensor>> tensors;
    for (const gantry::SafetensorsFile::Entry& entry : in.entries()) {
      const at::Tensor tensor = in.tensor(entry.name);
      tensors.emplace_back(entry.name, entry.name.starts_with("turned") ? tensor.t() : tensor);
    }
    gantry::write_safetensors(argv[2], tensors, in.metadata());
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
