#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gantry/export.h"

namespace gantry {

class State;

enum class Mode { train, eval, test };
GANTRY_API const char* mode_name(Mode mode);  ///< "train", "eval", "test"

/// One named thing in a batch, a sample, or a model's outputs.
using Value = std::variant<at::Tensor, double, int64_t, std::vector<std::string>, std::vector<at::Tensor>>;

/// An ordered map from names to values, small enough that a linear search is the fastest. Not thread-safe.
/// References stay valid until the next insertion. Copies share tensors.
class GANTRY_API Fields {
 public:
  Fields();
  Fields(std::initializer_list<std::pair<std::string, Value>> entries);
  Fields(const Fields&);
  Fields(Fields&&) noexcept;
  Fields& operator=(const Fields&);
  Fields& operator=(Fields&&) noexcept;
  ~Fields();

  /// Adds, or replaces at its old position.
  void set(std::string_view name, Value value);
  const Value* find(std::string_view name) const;
  Value* find(std::string_view name);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void erase(std::string_view name);
  void clear() { entries_.clear(); }

  /// The tensor of that name; throws gantry::Error that lists the names there are.
  const at::Tensor& tensor(std::string_view name) const;

  const std::vector<std::pair<std::string, Value>>& entries() const& { return entries_; }
  std::vector<std::pair<std::string, Value>>& entries() & { return entries_; }
  std::vector<std::pair<std::string, Value>> entries() && { return std::move(entries_); }  ///< of a temporary

 private:
  std::vector<std::pair<std::string, Value>> entries_;
};

/// What a model returns for a batch. In training "loss" must be a 0-dim tensor with a graph; every other
/// 0-dim tensor, double and int64_t is logged; "weight" (int64_t or double), if present, says how much the
/// batch counts (tokens, pixels) in place of its number of samples.
using Outputs = Fields;

/// Named numbers in order: metrics, log variables.
class GANTRY_API Scalars {
 public:
  void set(std::string_view name, double value);
  const double* find(std::string_view name) const;
  const std::vector<std::pair<std::string, double>>& entries() const& { return entries_; }
  /// Of a temporary, by value: `for (... : solver.collect_log_vars().entries())` stays sound.
  std::vector<std::pair<std::string, double>> entries() && { return std::move(entries_); }
  void clear() { entries_.clear(); }

 private:
  std::vector<std::pair<std::string, double>> entries_;
};

/// The weighted mean of a value that may live on any device, taken without waiting for the device: a CPU
/// value is read at once, another is added to a sum there. `mean()` is what synchronises. Not thread-safe.
class GANTRY_API MeanMeter {
 public:
  void add(const at::Tensor& value, double weight);  ///< 0-dim; its graph is ignored
  void add(double value, double weight);
  double mean() const;  ///< NaN when nothing was added
  double weight() const { return weight_; }
  void reset();

 private:
  friend class FieldMeans;
  double sum_ = 0, weight_ = 0;
  at::Tensor device_sum_;
};

/// The weighted mean of every number among some fields (0-dim tensors and doubles), by name, in the order in
/// which names were first seen. Costs what its meters cost: nothing waits for a device. Not thread-safe.
class GANTRY_API FieldMeans {
 public:
  void add(const Fields& fields, double weight);
  const std::vector<std::pair<std::string, MeanMeter>>& entries() const& { return entries_; }
  std::vector<std::pair<std::string, MeanMeter>> entries() && { return std::move(entries_); }  ///< of a temporary
  const MeanMeter* find(std::string_view name) const;  ///< nullptr for a name that was never seen
  /// Forgets the values and keeps the names.
  void reset();
  /// Exactly what is needed to go on: "<order>/<name>/sum" and so on.
  State state() const;
  void load_state(const State& state);

 private:
  std::vector<std::pair<std::string, MeanMeter>> entries_;
};

}  // namespace gantry
