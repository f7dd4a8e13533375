#include "gantry/metric_goal.h"

#include <vector>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {

MetricGoal::MetricGoal(const Config& config, std::string_view key) : key_(key), metric_(config.get<std::string>(key)) {
  if (metric_.empty() || (metric_.front() != '+' && metric_.front() != '-')) return;
  lower_is_better_ = metric_.front() == '-';
  metric_.erase(0, 1);
  if (metric_.empty()) throw config.error(key, "names no metric: write +acc@1 or -loss");
}

std::string MetricGoal::text() const {
  if (none()) return {};
  return (lower_is_better_ ? "-" : "+") + metric_;
}

double MetricGoal::value_in(const Scalars& metrics) const {
  if (const double* value = metrics.find(metric_)) return *value;
  std::vector<std::string> known;
  for (const auto& entry : metrics.entries()) known.push_back(entry.first);
  const std::vector<std::string> near = near_matches(metric_, known);
  throw Error(cat(key_, " is '", metric_, "', which the evaluation does not have",
                  near.empty() ? "." : cat("; did you mean '", near.front(), "'?"),
                  " It has: ", known.empty() ? "nothing" : join(known, ", ")));
}

}  // namespace gantry
