#include "config_change.h"

#include <algorithm>

#include "gantry/text.h"

namespace gantry {

namespace {

/// Whether `key` is a setting of the component whose name is the setting `of`.
bool belongs_to(const std::string& key, const std::string& of) { return key.starts_with(of + "."); }

bool is_length(const ConfigChange& change) {
  return (change.key == "SOLVER.MAX_EPOCHS" || change.key == "SOLVER.MAX_STEPS") && !change.saved.empty() &&
         !change.here.empty();
}

std::string lines_of(const std::vector<ConfigChange>& changes) {
  std::string lines;
  for (const ConfigChange& change : changes) lines += cat("\n  ", change.text());
  return lines;
}

}  // namespace

std::string ConfigChange::text() const {
  std::string text = saved.empty()  ? cat(key, ": absent in the checkpoint, ", here, " here")
                     : here.empty() ? cat(key, ": ", saved, " in the checkpoint, absent here")
                                    : cat(key, ": ", saved, " in the checkpoint, ", here, " here");
  if (!here.empty() && where.line > 0) text += cat(" (", where.str(), ")");
  return text;
}

std::vector<ConfigChange> config_changes(const Facts& saved, const Settings& here) {
  std::vector<ConfigChange> changes;
  // A component comes before its settings, on both sides.
  const auto add = [&](ConfigChange change) {
    const bool covered = std::any_of(changes.begin(), changes.end(),
                                     [&](const ConfigChange& earlier) { return belongs_to(change.key, earlier.key); });
    if (!covered) changes.push_back(std::move(change));
  };
  for (const Setting& mine : here) {
    const auto theirs =
        std::find_if(saved.begin(), saved.end(), [&](const auto& fact) { return fact.first == mine.key; });
    if (theirs == saved.end())
      add({mine.key, "", mine.value, mine.where});
    else if (theirs->second != mine.value)
      add({mine.key, theirs->second, mine.value, mine.where});
  }
  for (const auto& [key, value] : saved)
    if (std::none_of(here.begin(), here.end(), [&, &key = key](const Setting& mine) { return mine.key == key; }))
      add({key, value, "", {}});
  return changes;
}

void check_config_changes(const Config& solver, const CheckpointInfo& from, const Settings& here, bool allowed,
                          const Logger& logger) {
  const std::vector<ConfigChange> changes = config_changes(from.settings, here);
  if (changes.empty()) return;
  if (changes.size() == 1 && is_length(changes.front())) {
    logger.info(cat("the length of the run is another one: ", changes.front().text()));
  } else if (allowed) {
    logger.warn(cat("settings are not those of the checkpoint, so the result will be another one:", lines_of(changes)));
  } else {
    throw solver.error(
        "RESUME_FROM",
        cat("leads to ", from.path, ", which was saved with other settings; nothing was changed:", lines_of(changes),
            "\nGive the old values to go on as if nothing had happened, or take the new ones with: "
            "gantry run --allow-config-change"));
  }
}

}  // namespace gantry
