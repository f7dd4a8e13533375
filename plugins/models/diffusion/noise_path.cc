#include "noise_path.h"

#include <gantry/torch.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace diffusion {

NoisePath NoisePath::straight() { return {}; }

NoisePath NoisePath::variance_preserving(int64_t timesteps, const std::string& schedule) {
  // The signal's share of the variance under the cosine schedule; the offset keeps the first noise from being too
  // small.
  const auto cosine = [&](int64_t step) {
    constexpr double kOffset = 0.008;
    const double angle = (static_cast<double>(step) / timesteps + kOffset) / (1 + kOffset) * std::numbers::pi / 2;
    return std::cos(angle) * std::cos(angle);
  };
  // The linear schedule's ends are those for 1000 timesteps; fewer ones add more noise each.
  const double scale = 1000.0 / static_cast<double>(timesteps);
  NoisePath path;
  double share = 1;
  for (int64_t step = 0; step < timesteps; ++step) {
    const double along = timesteps == 1 ? 0 : static_cast<double>(step) / static_cast<double>(timesteps - 1);
    const double added =
        schedule == "cosine" ? 1 - cosine(step + 1) / cosine(step) : scale * (1e-4 + along * (0.02 - 1e-4));
    share *= 1 - std::min(added, 0.999);
    path.signal_.push_back(std::sqrt(share));
    path.noise_.push_back(std::sqrt(1 - share));
  }
  return path;
}

NoisePath::Levels NoisePath::at(const at::Tensor& u) const {
  if (signal_.empty()) return {u, 1 - u, u};
  const auto timesteps = static_cast<int64_t>(signal_.size());
  if (!table_.defined() || table_.device() != u.device()) {
    const auto table = at::stack({at::tensor(signal_, at::kDouble), at::tensor(noise_, at::kDouble)});
    table_ = table.to(u.device(), at::kFloat);
  }
  const at::Tensor step = (u * timesteps).to(at::kLong).clamp_max(timesteps - 1);
  return {(step + 1).to(at::kFloat).div(timesteps), table_[0].index_select(0, step), table_[1].index_select(0, step)};
}

std::vector<Level> NoisePath::back(int64_t steps) const {
  const auto timesteps = static_cast<int64_t>(signal_.size());
  if (timesteps > 0) steps = std::min(steps, timesteps);
  std::vector<Level> levels;
  for (int64_t left = steps; left > 0; --left) {
    const double share = static_cast<double>(left) / static_cast<double>(steps);
    if (timesteps == 0) {
      levels.push_back({share, 1 - share, share});
    } else {
      const auto step = static_cast<std::size_t>(std::lround(share * static_cast<double>(timesteps)) - 1);
      levels.push_back({static_cast<double>(step + 1) / static_cast<double>(timesteps), signal_[step], noise_[step]});
    }
  }
  levels.push_back({0, 1, 0});
  return levels;
}

}  // namespace diffusion
