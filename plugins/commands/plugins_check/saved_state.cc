#include "saved_state.h"

#include <gantry/error.h>
#include <gantry/safetensors.h>
#include <gantry/text.h>

#include <filesystem>

namespace plugins_check {

namespace {

constexpr std::size_t kMostNames = 8;

void add_names(const std::string& file, const std::vector<std::string>& prefixes, std::vector<std::string>& names) {
  if (!std::filesystem::exists(file)) return;
  const auto tensors = gantry::SafetensorsFile::open(file);
  for (const auto& entry : tensors.entries()) {
    for (const std::string& prefix : prefixes) {
      if (!entry.name.starts_with(prefix)) continue;
      std::string name = entry.name.substr(prefix.size());
      if (name.starts_with("state/")) name.erase(0, 6);
      if (name != "version") names.push_back(name);
    }
  }
}

}  // namespace

std::string saved_state_text(const std::string& kind, const std::string& checkpoint,
                             const std::vector<std::string>& prefixes) {
  if (prefixes.empty())
    return gantry::cat("a ", kind, " has no state of its own: what is to last belongs into the model's buffers");
  std::vector<std::string> names;
  try {
    for (const char* file : {"/optimizer.safetensors", "/state.safetensors"})
      add_names(checkpoint + file, prefixes, names);
  } catch (const gantry::Error& error) {
    return gantry::cat("its state cannot be read: ", error.what());
  }
  if (names.empty())
    return "nothing of it is in the checkpoint: it is not Stateful (gantry/capability.h), or has no state";
  const std::size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  return gantry::cat("its state in the checkpoint has ", gantry::join(names, ", "),
                     more == 0 ? "" : gantry::cat(" and ", more, " more"), ", which is not all that it needs");
}

}  // namespace plugins_check
