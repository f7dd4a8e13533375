#include <utility>

#include "gantry/gantry.h"
#include "gantry/transform.h"

namespace gantry {

namespace {

class Select final : public Transform {
 public:
  static void declare(Parameters& p) {
    p.add<std::vector<std::string>>("KEYS").not_empty().help("What is kept, in this order. Each must be there.");
    p.add<std::vector<std::string>>("META_KEYS", {}).help("What is kept as well where it is there.");
  }

  Select(const Config& config, Context&)
      : keys_(config.get<std::vector<std::string>>("KEYS")),
        meta_keys_(config.get<std::vector<std::string>>("META_KEYS")) {}

  void apply(Sample& sample, CounterRng&) const override { select(sample); }
  void apply_batch(Batch& batch, uint64_t, uint32_t) const override { select(batch); }

 private:
  void select(Fields& fields) const {
    Fields kept;
    for (const std::string& key : keys_) {
      Value* value = fields.find(key);
      if (value == nullptr) fields.tensor(key);  // throws, naming what there is
      if (!kept.has(key)) kept.set(key, std::move(*value));
    }
    for (const std::string& key : meta_keys_) {
      Value* value = fields.find(key);
      if (value != nullptr && !kept.has(key)) kept.set(key, std::move(*value));
    }
    fields.entries() = std::move(kept.entries());
  }

  const std::vector<std::string> keys_, meta_keys_;
};

}  // namespace

GANTRY_TRANSFORM(Select, "Select", "Keeps the named parts of a batch and drops the others.");

}  // namespace gantry
