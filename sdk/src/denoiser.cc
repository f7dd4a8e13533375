#include "gantry/denoiser.h"

namespace gantry {

Denoiser::~Denoiser() = default;
Generator::~Generator() = default;

}  // namespace gantry
