#include <gantry/error.h>
#include <gantry/text.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>

#include "evidence.h"
#include "harness.h"

namespace stop_and_go {
namespace {

constexpr int kNoticed = 1;
constexpr int kNotNoticed = 0;

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// The first line, as much as a table has room for.
std::string shortened(std::string text) {
  constexpr std::size_t kMost = 90;
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.size() <= kMost) return text;
  text.resize(kMost);
  return text + " ...";
}

/// "hooks/CheckpointHook/state/" of "hooks/CheckpointHook/state/best/by"; the path itself where there is no such part.
std::string component_of(const std::string& path) {
  const std::size_t at = path.find("/state/");
  return at == std::string::npos ? path : path.substr(0, at + 7);
}

}  // namespace

int Harness::mutate() {
  run_continuous();
  std::set<int64_t> saved;
  for (const gantry::CheckpointInfo& info :
       gantry::CheckpointStore(report_.runs.front().work_dir + "/checkpoints").list())
    saved.insert(info.iteration);
  const Moment stop = arguments_.places.empty() ? middle_of(course_, saved) : plan_stops(arguments_, course_).front();
  const Run stopped = runs_.segment("segment 1", "segment-1", nullptr, stop);
  report_.runs.push_back(stopped);
  std::cout << run_text(stopped, gantry::cat("stopped ", stop.place.sentence(), ": ", stopped.cause)) << '\n'
            << std::flush;
  const Items items(gantry::read_checkpoint(*stopped.newest));
  if (arguments_.mutate == "list") {
    list_items(items);
    return kNotNoticed;
  }
  const std::vector<std::string> paths = items_to_change(items);
  int64_t unnoticed = 0, unnamed = 0, unchanged = 0;
  for (const std::string& path : paths) {
    report_.changes.push_back(try_change(stopped, path));
    const Report::Change& change = report_.changes.back();
    std::cout << change_text(change) << std::flush;
    unchanged += change.mutation.changed() ? 0 : 1;
    unnoticed += change.mutation.changed() && !change.noticed ? 1 : 0;
    unnamed += change.noticed && !change.named ? 1 : 0;
  }
  const int64_t changed = static_cast<int64_t>(paths.size()) - unchanged;
  if (changed == 0) throw gantry::Error(gantry::cat(paths.front(), " is empty: there is nothing to change in it"));
  std::cout << '\n'
            << (unnoticed > 0 ? "NOT NOTICED: "
                : unnamed > 0 ? "NOT NAMED: "
                              : "NOTICED: ")
            << "of " << count_text(changed, "change") << ", " << changed - unnoticed << " noticed, "
            << changed - unnoticed - unnamed << " named\n";
  return unnoticed > 0 || unnamed > 0 ? kNotNoticed : kNoticed;
}

void Harness::list_items(const Items& items) const {
  std::cout << "groups\n";
  for (const Items::Group& group : items.groups)
    std::cout << "  " << group.name
              << std::string(std::max<std::size_t>(18, group.name.size() + 1) - group.name.size(), ' ')
              << count_text(static_cast<int64_t>(group.paths.size()), "value") << " under " << group.prefix
              << "; changed: " << group.paths.front() << '\n';
  std::cout << "\nvalues\n";
  for (const std::string& path : items.paths) std::cout << "  " << path << '\n';
}

std::vector<std::string> Harness::items_to_change(const Items& items) const {
  if (arguments_.mutate != "all") return {items.leaf(arguments_.mutate)};
  std::vector<std::string> paths = items.paths;
  // What is here for the comparison alone is none of the job's state.
  std::erase_if(paths, [&](const std::string& path) {
    return std::any_of(job_.added().begin(), job_.added().end(),
                       [&](const std::string& label) { return path.starts_with(gantry::cat("hooks/", label, "/")); });
  });
  return paths;
}

Report::Change Harness::try_change(const Run& stopped, const std::string& path) {
  const std::string folder = arguments_.mutate == "all" ? "mutated" : "segment-2";
  remove_tree(tree_.path(folder));
  Run run = runs_.prepare("segment 2", folder, &stopped, std::nullopt);
  Report::Change change;
  change.mutation = stop_and_go::mutate(*newest_checkpoint(run.work_dir), path);
  if (!change.mutation.changed()) return change;
  runs_.start(run);
  if (run.ending.exit_code != 0) {
    const std::string output = text_of(run.log);
    change.noticed = true;
    change.named = output.find(path) != std::string::npos;
    change.how = gantry::cat("refused (", run.ending.text(), ")");
    if (change.named) change.how += ": " + shortened(output.substr(output.find(path)));
    return change;
  }
  const std::vector<Comparison> comparisons = compare_with_continuous({stopped, run});
  const Comparison* first = first_difference(comparisons);
  if (first == nullptr) return change;
  change.noticed = true;
  const Comparison* recorded = nullptr;
  std::string seen_instead;  // of the same component, which made something else of the changed value
  for (const Comparison& comparison : comparisons) {
    if (comparison.kind == Comparison::Kind::restored)
      for (const Difference& difference : comparison.differences) {
        change.named = change.named || difference.field == path;
        if (seen_instead.empty() && difference.field.starts_with(component_of(path))) seen_instead = difference.field;
      }
    if (comparison.kind == Comparison::Kind::recorder && !comparison.equal() &&
        (recorded == nullptr || comparison.differences.front().iteration < recorded->differences.front().iteration))
      recorded = &comparison;
  }
  if (change.named) {
    change.how = "when it was restored";
  } else if (!seen_instead.empty()) {
    change.named = true;
    change.how = gantry::cat("its owner did not take it, and restored another ", seen_instead);
  } else {
    change.how = gantry::cat(first->name, ": ", first->differences.front().field);
  }
  if (recorded != nullptr && recorded != first)
    change.how += gantry::cat("; then ", recorded->name, ", iteration ", recorded->differences.front().iteration);
  if (arguments_.mutate != "all") report_.comparisons = comparisons;
  return change;
}

}  // namespace stop_and_go
