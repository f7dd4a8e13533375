#include "mutation.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gantry/error.h>
#include <gantry/tensor_text.h>
#include <gantry/text.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <type_traits>

namespace stop_and_go {
namespace {

struct GroupName {
  const char *name, *prefix;
};
constexpr GroupName kGroups[] = {{"weights", "model/"},
                                 {"optimizer", "optimizer/"},
                                 {"optimizer_whole", "optimizer_whole/"},
                                 {"lr", "trainer/lr/"},
                                 {"scheduler", "scheduler/"},
                                 {"rng", "rng/"},
                                 {"counters", "trainer/total_iter/"},
                                 {"step", "trainer/step"},
                                 {"epoch", "trainer/epoch"},
                                 {"cursor", "trainer/cursor"},
                                 {"phase", "trainer/phase"},
                                 {"means", "trainer/means/"},
                                 {"results", "trainer/results/"},
                                 {"dataset", "data/dataset/state/"},
                                 {"sampler", "data/sampler/state/"},
                                 {"data", "data/"},
                                 {"metrics", "metrics/"},
                                 {"ema", "hooks/ModelEmaHook/state/"},
                                 {"early_stop", "hooks/EarlyStopHook/state/"},
                                 {"best", "hooks/CheckpointHook/state/best/"},
                                 {"hooks", "hooks/"}};

template <class T>
std::string number(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return gantry::cat(+value);
  else
    return gantry::number_text(static_cast<double>(value));
}

template <class T>
T changed(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return !value;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(value) + 1u);
  } else {
    const double x = static_cast<double>(value);
    if (!std::isfinite(x)) return static_cast<T>(1.0);
    const T sum = static_cast<T>(x + 1);
    return static_cast<double>(sum) != x ? sum : static_cast<T>(2 * x);
  }
}

template <class T>
void change_one(at::Tensor& tensor, int64_t index, Mutation& mutation) {
  T& value = tensor.mutable_data_ptr<T>()[index];
  mutation.before = number(value);
  value = changed(value);
  mutation.after = number(value);
}

/// Where not every byte means something, one that is not zero does: of a generator's words the upper halves are unused.
int64_t meaningful_byte(const at::Tensor& tensor) {
  const auto* bytes = tensor.const_data_ptr<uint8_t>();
  const int64_t size = tensor.numel();
  for (int64_t i = size / 2; i < size; ++i)
    if (bytes[i] != 0) return i;
  for (int64_t i = size / 2; i-- > 0;)
    if (bytes[i] != 0) return i;
  return size / 2;
}

at::Tensor change(const at::Tensor& original, Mutation& mutation) {
  at::Tensor tensor = original.clone().contiguous();
  mutation.type = gantry::tensor_text(tensor);
  if (tensor.numel() == 0) return tensor;
  const int64_t middle = tensor.numel() / 2;
  switch (tensor.scalar_type()) {
    case at::kFloat:
      change_one<float>(tensor, middle, mutation);
      break;
    case at::kDouble:
      change_one<double>(tensor, middle, mutation);
      break;
    case at::kHalf:
      change_one<c10::Half>(tensor, middle, mutation);
      break;
    case at::kBFloat16:
      change_one<c10::BFloat16>(tensor, middle, mutation);
      break;
    case at::kLong:
      change_one<int64_t>(tensor, middle, mutation);
      break;
    case at::kInt:
      change_one<int32_t>(tensor, middle, mutation);
      break;
    case at::kShort:
      change_one<int16_t>(tensor, middle, mutation);
      break;
    case at::kChar:
      change_one<int8_t>(tensor, middle, mutation);
      break;
    case at::kBool:
      change_one<bool>(tensor, middle, mutation);
      break;
    case at::kByte:
      change_one<uint8_t>(tensor, meaningful_byte(tensor), mutation);
      break;
    default:
      break;
  }
  return tensor;
}

}  // namespace

Items::Items(const gantry::State& state) {
  for (const gantry::State::Leaf& leaf : state.leaves()) paths.push_back(leaf.path);
  for (const auto& [name, prefix] : kGroups) {
    Group group{name, prefix, {}};
    for (const std::string& path : paths)
      if (path.starts_with(prefix)) group.paths.push_back(path);
    if (!group.paths.empty()) groups.push_back(std::move(group));
  }
}

std::string Items::leaf(const std::string& item) const {
  if (std::find(paths.begin(), paths.end(), item) != paths.end()) return item;
  std::vector<std::string> candidates = paths;
  for (const Group& group : groups) {
    if (group.name == item) return group.paths.front();
    candidates.push_back(group.name);
  }
  for (const std::string& path : paths)
    if (path.starts_with(item) && (item.ends_with('/') || path[item.size()] == '/')) return path;
  std::string message = gantry::cat("the state has no item '", item, "'");
  const std::vector<std::string> near = gantry::near_matches(item, candidates);
  if (!near.empty()) message += gantry::cat("; did you mean ", gantry::join(near, " or "), "?");
  throw gantry::Error(message + " --mutate list shows all");
}

Mutation mutate(const gantry::CheckpointInfo& checkpoint, const std::string& path) {
  Mutation mutation;
  mutation.path = path;
  gantry::State state;
  const gantry::State saved = gantry::read_checkpoint(checkpoint);
  for (const gantry::State::Leaf& leaf : saved.leaves())
    state.set(leaf.path, leaf.path == path ? change(leaf.value, mutation) : leaf.value);
  if (!mutation.changed()) return mutation;
  gantry::CheckpointStore store(std::filesystem::path(checkpoint.path).parent_path().string());
  const std::string number = gantry::cat("-", checkpoint.iteration);
  if (!checkpoint.name.ends_with(number))
    throw gantry::Error(gantry::cat("the checkpoint ", checkpoint.name, " is not named as Gantry names them"));
  store.set_prefix(checkpoint.name.substr(0, checkpoint.name.size() - number.size()));
  store.save(state, checkpoint);
  return mutation;
}

}  // namespace stop_and_go
