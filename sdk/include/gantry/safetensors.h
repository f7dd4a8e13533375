#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/export.h"

/// Files of named tensors in the safetensors format (https://github.com/huggingface/safetensors, README, "Format"):
/// an 8-byte little-endian length, that many bytes of JSON, then the tensors' bytes. Nothing in such a file can run
/// code. Python reads and writes them with the package of that name.
namespace gantry {

/// A file that is there to be read. The file is mapped, so that opening costs its header alone.
///
/// Opening checks everything that the header says: its length (at most 100 MB), its JSON, nesting, repeated names,
/// dtypes, shapes, and that the tensors fill the rest of the file without holes and overlaps. A defect is a
/// gantry::Error that names the file, the tensors and the numbers. Immutable; any thread.
class GANTRY_API SafetensorsFile final {
 public:
  struct Entry {
    std::string name;
    at::ScalarType dtype;
    std::vector<int64_t> shape;
    int64_t begin, end;  ///< bytes, from the end of the header
  };

  static SafetensorsFile open(const std::string& path);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  const std::string& path() const;
  int64_t size() const;                       ///< bytes of the whole file
  const std::vector<Entry>& entries() const;  ///< in the order of their bytes
  const Entry* find(std::string_view name) const;
  /// The texts under "__metadata__", in the file's order.
  const std::vector<std::pair<std::string, std::string>>& metadata() const;
  /// On the CPU. Aliases the mapping, which lives as long as any tensor of it: do not write to it, and do not truncate
  /// the file meanwhile. Throws gantry::Error for an unknown name.
  at::Tensor tensor(std::string_view name) const;

 private:
  struct Impl;
  explicit SafetensorsFile(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

/// What became of a written file.
struct WrittenFile {
  int64_t size = 0;  ///< bytes
  std::string xxh3;  ///< XXH3, 64 bits, of all bytes: 16 hexadecimal digits
};

/// Writes tensors under their names, from any device, contiguous or not, and flushes them to the disk (fsync). The
/// same tensors, names and metadata give the same bytes: larger element types first, then by name, each aligned to
/// 8 bytes where the format allows it. Replaces an existing file's content: to publish a file at once, write it under
/// another name and rename it. Names must differ. Throws gantry::Error that names the file, the reason of the system,
/// and the bytes needed and free when the disk is full; what was written by then is left.
GANTRY_API WrittenFile write_safetensors(const std::string& path,
                                         const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                                         const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace gantry
