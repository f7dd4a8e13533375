#include "rng_state.h"

#include <ATen/Context.h>

#include <mutex>

namespace gantry {

namespace {

std::vector<at::Generator> generators() {
  std::vector<at::Generator> all{at::globalContext().defaultGenerator(at::kCPU)};
  if (at::hasCUDA())
    for (int i = 0; i < at::detail::getCUDAHooks().deviceCount(); ++i)
      all.push_back(at::globalContext().defaultGenerator(at::Device(at::kCUDA, static_cast<at::DeviceIndex>(i))));
  return all;
}

}  // namespace

RngState RngState::now() {
  std::vector<at::Tensor> tensors;
  for (at::Generator& generator : generators()) {
    std::lock_guard<std::mutex> lock(generator.mutex());
    tensors.push_back(generator.get_state());
  }
  return RngState(std::move(tensors));
}

void RngState::restore() const {
  std::vector<at::Generator> all = generators();
  for (std::size_t i = 0; i < all.size() && i < tensors_.size(); ++i) {
    std::lock_guard<std::mutex> lock(all[i].mutex());
    all[i].set_state(tensors_[i]);
  }
}

}  // namespace gantry
