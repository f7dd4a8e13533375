#include "gantry/optimizer.h"

#include "gantry/name_pattern.h"
#include "gantry/text.h"

namespace gantry {

ParamGroup::ParamGroup(std::string name, double base_lr, double weight_decay)
    : name_(std::move(name)), base_lr_(base_lr), lr_(base_lr), weight_decay_(weight_decay) {}

/// Of each group but the first, in the groups' order.
struct Optimizer::Patterns {
  std::vector<std::vector<NamePattern>> of_group;
};

void Optimizer::declare_common(Parameters& parameters) {
  Parameters keys;
  keys.add<std::vector<std::string>>("MATCH").not_empty().help(
      "Regular expressions looked for in the parameters' names, such as 'bias$'; one of them is enough.");
  keys.optional<double>("LEARNING_RATE").at_least(0).help("Of this group; default: the optimizer's.");
  keys.optional<double>("WEIGHT_DECAY").at_least(0).help("Of this group; default: the optimizer's.");
  parameters.sections("PARAM_GROUPS", std::move(keys))
      .help("Parameters with options of their own. Each belongs to the first group that it matches, or to none.");
}

Optimizer::Optimizer(const Config& config) : patterns_(std::make_unique<Patterns>()) {
  const double rate = config.get<double>("LEARNING_RATE");
  const bool decays = config.find("WEIGHT_DECAY") != nullptr;
  const double decay = decays ? config.get<double>("WEIGHT_DECAY") : 0;
  groups_.emplace_back("default", rate, decay);
  for (const Config& group : config.get<std::vector<Config>>("PARAM_GROUPS")) {
    if (group.has("WEIGHT_DECAY") && !decays)
      throw group.error("WEIGHT_DECAY", cat("cannot be set for a group: optimizer ", config.name(), " has none"));
    groups_.emplace_back(join(group.get<std::vector<std::string>>("MATCH"), "|"),
                         group.has("LEARNING_RATE") ? group.get<double>("LEARNING_RATE") : rate,
                         group.has("WEIGHT_DECAY") ? group.get<double>("WEIGHT_DECAY") : decay);
    patterns_->of_group.push_back(name_patterns(group, "MATCH"));
  }
}

Optimizer::~Optimizer() = default;

int64_t Optimizer::group_of(const std::string& parameter) const {
  for (std::size_t g = 0; g < patterns_->of_group.size(); ++g)
    if (any_found_in(patterns_->of_group[g], parameter)) return static_cast<int64_t>(g) + 1;
  return 0;
}

ClosureOptimizer::~ClosureOptimizer() = default;

}  // namespace gantry
