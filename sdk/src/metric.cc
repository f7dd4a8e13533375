#include "gantry/metric.h"

#include "gantry/error.h"
#include "gantry/text.h"
#include "tensor_text.h"

namespace gantry {

Metric::~Metric() = default;

const at::Tensor& find_tensor(const Batch& batch, const Outputs& outputs, std::string_view key) {
  if (outputs.has(key)) return outputs.tensor(key);
  if (batch.has(key)) return batch.tensor(key);
  throw Error(cat("neither the model's outputs nor the batch have '", key, "': the outputs have ", names_text(outputs),
                  "; the batch has ", names_text(batch)));
}

}  // namespace gantry
