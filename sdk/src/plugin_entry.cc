#include "gantry/plugin_entry.h"

#include <cstring>

#include "gantry/plugin.h"

namespace gantry {

const char* build_note() { return GANTRY_BUILD_NOTE "\n"; }

int kind_abi(const char* kind) {
  struct Kind {
    const char* name;
    int abi;
  };
  static constexpr Kind kinds[] = {
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
  };
  for (const Kind& known : kinds)
    if (std::strcmp(known.name, kind) == 0) return known.abi;
  return 0;
}

}  // namespace gantry
