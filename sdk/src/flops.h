#pragma once

#include <cstdint>
#include <functional>

namespace gantry {

/// Floating-point operations of what `run` does in LibTorch on this thread, a multiply-add counted as two:
/// matrix products, convolutions and attention, which are nearly all of a network's. Elementwise work is not
/// counted.
int64_t count_flops(const std::function<void()>& run);

}  // namespace gantry
