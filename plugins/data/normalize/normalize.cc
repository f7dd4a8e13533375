#include <ATen/ops/tensor.h>

#include <utility>

#include "gantry/gantry.h"
#include "gantry/transform.h"

namespace gantry {

namespace {

class Normalize final : public Transform, public PointwiseTransform {
 public:
  static void declare(Parameters& p) {
    p.add<std::vector<double>>("MEAN").not_empty().help(
        "Subtracted, one number per channel. Bytes are divided by 255 first, so it is of values from 0 to 1.");
    p.add<std::vector<double>>("STD").above(0).not_empty().help("Divided by after that, one number per channel.");
    p.add<std::string>("INPUT_KEY", "img").not_empty().help("The tensor to normalize, channels first.");
  }

  Normalize(const Config& config, Context&)
      : config_(config),
        key_(config.get<std::string>("INPUT_KEY")),
        mean_(at::tensor(config.get<std::vector<double>>("MEAN"), at::kDouble)),
        std_(at::tensor(config.get<std::vector<double>>("STD"), at::kDouble)) {
    if (mean_.numel() != std_.numel()) {
      throw config.error(
          "STD", cat("has ", std_.numel(), " numbers, MEAN has ", mean_.numel(), "; each needs one per channel"));
    }
  }

  std::string pointwise_key() const override { return key_; }
  void apply(Sample& sample, CounterRng&) const override { sample.set(key_, normalized(sample.tensor(key_), 0)); }
  void apply_batch(Batch& batch, uint64_t, uint32_t) const override {
    batch.set(key_, normalized(batch.tensor(key_), 1));
  }

 private:
  // In PyTorch's order of operations, (x.float() / 255 - mean) / std, so that the bits are PyTorch's.
  at::Tensor normalized(const at::Tensor& input, int64_t channel_dim) const {
    if (input.dim() <= channel_dim || input.size(channel_dim) != mean_.numel()) {
      throw config_.error("MEAN",
                          cat("has ", mean_.numel(), " numbers, but '", key_, "' has ",
                              input.dim() <= channel_dim ? 0 : input.size(channel_dim), " channels; each needs one"));
    }
    const bool bytes = input.scalar_type() == at::kByte;
    if (!bytes && !input.is_floating_point()) {
      throw config_.error("INPUT_KEY", cat("names '", key_,
                                           "', which holds integers of more than a byte; "
                                           "Normalize takes bytes and floating-point numbers"));
    }
    const at::Tensor x = bytes ? input.to(at::kFloat).div_(255) : input;
    std::vector<int64_t> shape(static_cast<std::size_t>(input.dim() - channel_dim), 1);
    shape[0] = mean_.numel();
    return x.sub(mean_.to(x.scalar_type()).view(shape)).div_(std_.to(x.scalar_type()).view(shape));
  }

  const Config config_;
  const std::string key_;
  const at::Tensor mean_, std_;
};

}  // namespace

GANTRY_PLUGIN("gantry-normalize", GANTRY_VERSION);
GANTRY_TRANSFORM(Normalize, "Normalize", "Subtracts a mean and divides by a standard deviation, per channel.");

}  // namespace gantry
