#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "step_files.h"

/// Pages that a browser opens from the disk: nothing in them leads out of the folder.
namespace probe_data {

/// A folder beside the one of a page; "" where there is none.
struct Neighbours {
  std::string previous, next;
};

/// Everything that was shown at one step.
std::string step_page(const Step& step, const std::vector<Item>& items, const Neighbours& neighbours);
/// The page of a step with other neighbours.
std::string with_neighbours(std::string page, const Neighbours& neighbours);

/// A step in the list of all.
struct StepLink {
  std::string folder;
  std::vector<std::string> pictures;  ///< in the folder
};
std::string steps_page(const std::string& mode, const std::vector<StepLink>& steps);

/// Fit for the text of a page and for a quoted attribute.
std::string html(std::string_view text);

}  // namespace probe_data
