#include "gantry/gantry.h"
#include "gantry/transform.h"

namespace gantry {

namespace {

class Identity final : public Transform {
 public:
  Identity(const Config&, Context&) {}
  void apply(Sample&, CounterRng&) const override {}
  void apply_batch(Batch&, uint64_t, uint32_t) const override {}
};

}  // namespace

GANTRY_TRANSFORM(Identity, "Identity", "Leaves everything as it is.");

}  // namespace gantry
