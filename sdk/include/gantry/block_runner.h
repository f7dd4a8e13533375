#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string_view>
#include <utility>

#include "gantry/export.h"

namespace gantry {

/// Runs a named block of a model: the place where activation checkpointing, sharding or tracing attach.
class GANTRY_API BlockRunner {
 public:
  virtual ~BlockRunner();
  virtual at::Tensor run(std::string_view name, const std::function<at::Tensor(const at::Tensor&)>& block,
                         const at::Tensor& input) = 0;
};

/// What a model calls its blocks through: `x = blocks.run("layer3", layer3_, x);`. A plain call unless a
/// runner is attached.
class Blocks final {
 public:
  template <class F>
  at::Tensor run(std::string_view name, F&& block, const at::Tensor& input) const {
    if (runner_ == nullptr) return block(input);
    return runner_->run(
        name, [&block](const at::Tensor& x) -> at::Tensor { return block(x); }, input);
  }
  void attach(BlockRunner* runner) { runner_ = runner; }  ///< not owned; nullptr detaches

 private:
  BlockRunner* runner_ = nullptr;
};

}  // namespace gantry
