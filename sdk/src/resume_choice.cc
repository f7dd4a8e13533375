#include "resume_choice.h"

#include <filesystem>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {

CheckpointInfo named_checkpoint(const Config& solver) {
  namespace fs = std::filesystem;
  const std::string path = solver.get<std::string>("RESUME_FROM");
  std::error_code problem;
  if (!fs::exists(path, problem))
    throw solver.error("RESUME_FROM",
                       cat("there is no checkpoint ", fs::absolute(path).lexically_normal().string(),
                           ": name one of WORK_DIR/checkpoints, or write auto for the newest, if there is one"));
  try {
    CheckpointInfo info = read_checkpoint_info(path);
    verify_checkpoint(info);
    return info;
  } catch (const Error& error) {
    throw solver.error("RESUME_FROM", error.what());
  }
}

std::optional<CheckpointInfo> newest_checkpoint(const CheckpointStore& store, const Config& solver,
                                                const Logger& logger, std::vector<std::string>& damaged) {
  std::vector<std::string> reasons;
  const std::vector<CheckpointInfo> all = store.list(&reasons);
  std::optional<CheckpointInfo> newest;
  for (auto info = all.rbegin(); info != all.rend() && !newest.has_value(); ++info) {
    try {
      verify_checkpoint(*info);
      newest = *info;
    } catch (const Error& error) {
      damaged.push_back(info->name);
      reasons.push_back(error.what());
    }
  }
  if (!newest.has_value() && !reasons.empty())
    throw solver.error("RESUME_FROM", cat("RESUME_FROM is auto, and none of the checkpoints in ", store.directory(),
                                          " is whole; move them away to start afresh:\n  ", join(reasons, "\n  ")));
  for (const std::string& reason : reasons) logger.warn(cat("passed over: ", reason));
  return newest;
}

}  // namespace gantry
