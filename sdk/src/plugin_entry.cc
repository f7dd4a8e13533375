#include "gantry/plugin_entry.h"

#include <cstring>

#include "gantry/plugin.h"

namespace gantry {
namespace {

struct Kind {
  const char* name;
  int abi;
};
constexpr Kind kKinds[] = {
    {KindOf<BaseSolver>::name, KindOf<BaseSolver>::abi},
    {KindOf<Hook>::name, KindOf<Hook>::abi},
    {KindOf<Model>::name, KindOf<Model>::abi},
    {KindOf<Module>::name, KindOf<Module>::abi},
    {KindOf<Loss>::name, KindOf<Loss>::abi},
    {KindOf<Dataset>::name, KindOf<Dataset>::abi},
    {KindOf<Sampler>::name, KindOf<Sampler>::abi},
    {KindOf<Transform>::name, KindOf<Transform>::abi},
    {KindOf<Optimizer>::name, KindOf<Optimizer>::abi},
    {KindOf<LrScheduler>::name, KindOf<LrScheduler>::abi},
    {KindOf<Metric>::name, KindOf<Metric>::abi},
    {KindOf<FileSystem>::name, KindOf<FileSystem>::abi},
    {KindOf<Command>::name, KindOf<Command>::abi},
};

}  // namespace

const char* build_note() { return GANTRY_BUILD_NOTE "\n"; }

int kind_abi(const char* kind) {
  for (const Kind& known : kKinds)
    if (std::strcmp(known.name, kind) == 0) return known.abi;
  return 0;
}

std::vector<std::string> known_kinds() {
  std::vector<std::string> names;
  for (const Kind& known : kKinds) names.push_back(known.name);
  return names;
}

}  // namespace gantry
