#include "background_save.h"

#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace gantry {

namespace {

// What cannot be removed is removed by the next run.
void remove_folders(std::vector<std::string>& folders) {
  std::error_code ignored;
  for (const std::string& folder : folders) std::filesystem::remove_all(folder, ignored);
  folders.clear();
}

}  // namespace

BackgroundSave::~BackgroundSave() {
  if (thread_.joinable()) thread_.join();
  store_.put_off_removals(nullptr);
  remove_folders(removed_);
}

State BackgroundSave::copy(const State& state) {
  const at::NoGradGuard no_grad;
  State result;
  bool from_gpu = false;
  for (const State::Leaf& leaf : state.leaves()) {
    at::Tensor& kept = kept_[leaf.path];
    const bool on_gpu = leaf.value.is_cuda();
    from_gpu |= on_gpu;
    if (!kept.defined() || kept.sizes() != leaf.value.sizes() || kept.scalar_type() != leaf.value.scalar_type())
      kept = at::empty(leaf.value.sizes(), at::TensorOptions().dtype(leaf.value.scalar_type()).pinned_memory(on_gpu));
    kept.copy_(leaf.value, /*non_blocking=*/on_gpu);
    if (leaf.global_shape.empty())
      result.set(leaf.path, kept);
    else
      result.set_shard(leaf.path, kept, leaf.global_shape, leaf.offset);
  }
  if (from_gpu) at::detail::getCUDAHooks().deviceSynchronize(at::detail::getCUDAHooks().getCurrentDevice());
  return result;
}

void BackgroundSave::start(const State& state, CheckpointInfo info) {
  if (thread_.joinable()) throw std::logic_error("a checkpoint is still being written");
  state_ = copy(state);
  info_ = std::move(info);
  doomed_ = std::exchange(removed_, {});
  failure_ = nullptr;
  written_.store(false, std::memory_order_relaxed);
  thread_ = std::thread([this] {
    remove_folders(doomed_);
    try {
      info_ = store_.save(state_, std::move(info_));
    } catch (...) {
      failure_ = std::current_exception();
    }
    written_.store(true, std::memory_order_release);
  });
}

std::optional<CheckpointInfo> BackgroundSave::collect(bool wait) {
  if (!thread_.joinable() || (!wait && !written_.load(std::memory_order_acquire))) return std::nullopt;
  thread_.join();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return std::move(info_);
}

}  // namespace gantry
