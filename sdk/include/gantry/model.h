#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "gantry/batch.h"
#include "gantry/block_runner.h"
#include "gantry/export.h"
#include "gantry/parameters.h"
#include "gantry/probe.h"

namespace gantry {

/// What is trained: from a batch to a loss. A LibTorch module; register submodules and parameters in the
/// constructor (register_module), on the CPU: the solver moves the model to its device.
///
/// Thread: main. Random numbers come from LibTorch's default generators, which the solver seeds and saves.
class GANTRY_API Model : public torch::nn::Module {
 public:
  /// Where it starts from: PRETRAINED_MODEL (a .safetensors file, the index of a sharded one, or a checkpoint's
  /// folder), STRICT, IGNORE_KEYS, NAME_MAP. The solver loads it; see pretrained.h.
  static void declare_common(Parameters& parameters);

  Model();
  ~Model() override;

  /// One pass over a batch that is already on the device. In Mode::train the outputs hold "loss" with its
  /// graph; in the other modes gradients are off, and "loss" is there if the batch has targets.
  virtual Outputs forward(const Batch& batch, Mode mode) = 0;
  /// The weight of an ordinary batch, where outputs carry a "weight" of their own: 0 means BATCH_SIZE.
  virtual double nominal_weight() const;

  /// To run named blocks through; see BlockRunner. Give it to submodules that have blocks.
  Blocks blocks;
  /// For what is worth looking at: `if (probes->wanted()) probes->image("attention", map);`. The solver's own; never
  /// null.
  std::shared_ptr<Probes> probes;
};

/// A part of a model: a backbone, a neck, a head.
class GANTRY_API Module : public torch::nn::Module {
 public:
  Module();
  ~Module() override;
  virtual at::Tensor forward(const at::Tensor& input) = 0;
  /// The size of the output's last (or only) feature dimension, for what is built on top; 0: unknown.
  virtual int64_t out_features() const;
};

/// From a prediction and a target to a 0-dim tensor: the mean over the batch.
class GANTRY_API Loss : public torch::nn::Module {
 public:
  Loss();
  ~Loss() override;
  virtual at::Tensor forward(const at::Tensor& prediction, const at::Tensor& target) = 0;
};

struct NamedParameter {
  std::string name;  ///< path in the module tree
  at::Tensor tensor;
  std::vector<std::string> aliases;  ///< other paths of the same tensor
};
/// Parameters of a module tree, each tensor once: LibTorch's parameters() repeats tied ones, and an optimizer
/// would then step them twice.
GANTRY_API std::vector<NamedParameter> named_parameters(const torch::nn::Module& module);
GANTRY_API std::vector<NamedParameter> named_buffers(const torch::nn::Module& module);

}  // namespace gantry
