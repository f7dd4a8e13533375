#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/export.h"

namespace gantry {

/// What a run needs to go on: an ordered set of leaves, each a tensor under a path such as
/// "optimizer/fc.weight/exp_avg". Numbers are 0-dim tensors (int64, float64: exact), text a 1-D uint8 tensor.
/// A value: copies share tensors. Not thread-safe.
///
/// A leaf may be one process's part of a larger tensor: then `global_shape` and `offset` say which.
class GANTRY_API State final {
 public:
  struct Leaf {
    std::string path;
    at::Tensor value;
    std::vector<int64_t> global_shape;  ///< empty: the leaf is whole
    std::vector<int64_t> offset;
  };

  State();
  State(const State&);
  State(State&&) noexcept;
  State& operator=(const State&);
  State& operator=(State&&) noexcept;
  ~State();

  /// Adds a leaf. Throws std::logic_error for a path that is empty or taken.
  void set(std::string_view path, at::Tensor value);
  void set_shard(std::string_view path, at::Tensor value, std::vector<int64_t> global_shape,
                 std::vector<int64_t> offset);
  void set_int(std::string_view path, int64_t value);
  void set_double(std::string_view path, double value);
  void set_text(std::string_view path, std::string_view value);
  /// Adds every leaf of `child` under "prefix/".
  void merge(std::string_view prefix, const State& child);

  bool has(std::string_view path) const;
  /// These throw gantry::Error that names the path when the leaf is absent or of another type.
  const at::Tensor& tensor(std::string_view path) const;
  int64_t integer(std::string_view path) const;
  double number(std::string_view path) const;
  std::string text(std::string_view path) const;
  /// The leaves under "prefix/", their paths without it.
  State child(std::string_view prefix) const;

  bool empty() const { return leaves_.empty(); }
  const std::vector<Leaf>& leaves() const& { return leaves_; }
  std::vector<Leaf> leaves() && { return std::move(leaves_); }  ///< of a temporary, so that loops over it are sound

 private:
  void add(Leaf leaf);
  const Leaf* find(std::string_view path) const;
  const Leaf& leaf(std::string_view path) const;
  std::vector<Leaf> leaves_;
  std::vector<std::size_t> by_path_;  // indices into leaves_, by ascending path
};

/// Compares names, dtypes and shapes of two states and returns one line per difference: "missing: a/b",
/// "unexpected: c", "a/b: float32 [3, 2] in the checkpoint, float32 [4, 2] here". Empty when `saved` fits.
GANTRY_API std::vector<std::string> state_differences(const State& saved, const State& expected);

}  // namespace gantry
