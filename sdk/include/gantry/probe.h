#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/export.h"

namespace gantry {

/// One thing that a solver or a model shows.
struct Probe {
  enum class Kind { image, tensor, number, text, distribution };
  std::string name;
  Kind kind = Kind::number;
  at::Tensor value;                 ///< of image, tensor and distribution; on the CPU, and nobody else's
  double number = 0;                ///< of number
  std::vector<std::string> labels;  ///< of image: one for each, or none; of text: the text alone
};

/// What models, solvers and hooks show of an iteration, for ProbeDataHook and TensorBoard to write down. Costs nothing
/// unless someone has asked: producers look at `wanted()` first, and build what they show only then. Main thread.
///
/// Who wants to see an iteration calls request() in its before_iter, or in a phase's before_all_iter for all of an
/// evaluation, and reads entries() in after_iter or, of an evaluation, in after_all_iter. A training iteration begins
/// with none; so does an evaluation, whose iterations add to the same. A name shown again replaces what it showed.
/// Names are paths: "denoiser/attention".
class GANTRY_API Probes final {
 public:
  bool wanted() const { return wanted_; }
  void request() { wanted_ = true; }
  void clear();  ///< the solver's

  /// One picture [C, H, W] or several [N, C, H, W], C being 1 or 3: bytes, or floating-point numbers from 0 to 1.
  void image(std::string_view name, const at::Tensor& images, std::vector<std::string> labels = {});
  void tensor(std::string_view name, const at::Tensor& value);
  void number(std::string_view name, double value);
  void text(std::string_view name, std::string text);
  /// Values of any shape, to be counted: integers by value, others in bins. Counts add up over the run.
  void distribution(std::string_view name, const at::Tensor& values);

  const std::vector<Probe>& entries() const { return entries_; }
  const Probe* find(std::string_view name) const;

 private:
  Probe& at(std::string_view name, Probe::Kind kind);
  std::vector<Probe> entries_;
  bool wanted_ = false;
};

}  // namespace gantry
