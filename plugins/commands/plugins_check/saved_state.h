#pragma once

#include <string>
#include <vector>

namespace plugins_check {

/// What a checkpoint holds of a component: "its state has count, mean", or that there is nothing of it.
std::string saved_state_text(const std::string& kind, const std::string& checkpoint,
                             const std::vector<std::string>& prefixes);

}  // namespace plugins_check
