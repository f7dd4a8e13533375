#include <algorithm>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/transform.h"

namespace gantry {

namespace {

class Rename final : public Transform {
 public:
  static void declare(Parameters& p) {
    p.add<std::vector<std::string>>("INPUT_KEY").not_empty().help("The names to replace.");
    p.add<std::vector<std::string>>("OUTPUT_KEY").not_empty().help("The names to replace them by, one for each.");
  }

  Rename(const Config& config, Context&)
      : config_(config),
        from_(config.get<std::vector<std::string>>("INPUT_KEY")),
        to_(config.get<std::vector<std::string>>("OUTPUT_KEY")) {
    if (to_.size() != from_.size()) {
      throw config.error("OUTPUT_KEY", cat("has ", to_.size(), to_.size() == 1 ? " name" : " names", ", INPUT_KEY has ",
                                           from_.size(), "; each needs one"));
    }
    refuse_twice("INPUT_KEY", from_);
    refuse_twice("OUTPUT_KEY", to_);
  }

  void apply(Sample& sample, CounterRng&) const override { rename(sample); }
  void apply_batch(Batch& batch, uint64_t, uint32_t) const override { rename(batch); }

 private:
  void refuse_twice(const char* key, const std::vector<std::string>& names) const {
    for (auto name = names.begin(); name != names.end(); ++name) {
      if (std::find(names.begin(), name, *name) != name) throw config_.error(key, cat("has '", *name, "' twice"));
    }
  }

  void rename(Fields& fields) const {
    const auto index_of = [](const std::vector<std::string>& names, const std::string& name) {
      return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    for (const std::string& name : from_) {
      if (!fields.has(name)) fields.tensor(name);  // throws, naming what there is
    }
    for (auto& [name, value] : fields.entries()) {
      const std::size_t i = index_of(from_, name);
      if (i < from_.size()) continue;
      const std::size_t taken = index_of(to_, name);
      if (taken == to_.size()) continue;
      throw config_.error("OUTPUT_KEY", cat("calls '", from_[taken], "' '", name, "', but there is another '", name,
                                            "' already: rename or drop (Select) that one first"));
    }
    for (auto& [name, value] : fields.entries()) {
      const std::size_t i = index_of(from_, name);
      if (i < from_.size()) name = to_[i];
    }
  }

  const Config config_;
  const std::vector<std::string> from_, to_;
};

}  // namespace

GANTRY_TRANSFORM(Rename, "Rename", "Gives parts of a batch other names.");

}  // namespace gantry
