#include "gantry/block_runner.h"

namespace gantry {

BlockRunner::~BlockRunner() = default;

}  // namespace gantry
