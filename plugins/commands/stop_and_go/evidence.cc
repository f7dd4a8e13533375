#include "evidence.h"

#include <gantry/error.h>
#include <gantry/tensor_text.h>
#include <gantry/text.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace stop_and_go {
namespace {

namespace fs = std::filesystem;
using gantry::CheckpointInfo;
using gantry::Recording;

constexpr char kRestored[] = "RestoredStateCallback";

/// The recordings of a training, by their labels.
std::set<std::string> labels(const std::string& work_dir) {
  std::set<std::string> found;
  const fs::path folder = fs::path(work_dir) / "recordings";
  std::error_code problem;
  for (auto entry = fs::recursive_directory_iterator(folder, problem); entry != fs::recursive_directory_iterator();
       entry.increment(problem))
    if (entry->path().extension() == ".jsonl")
      found.insert(entry->path().lexically_relative(folder).replace_extension().string());
  std::erase_if(found, [](const std::string& label) { return label.starts_with("evaluation/"); });
  return found;
}

/// Such an entry stands for a process and not for the run: see AbstractStopAndGoCallback.
bool of_process(const Recording& recording) {
  return recording.recorder == kRestored || (!recording.entries.empty() && recording.entries.front().event < 0);
}

Difference plain_difference(std::string field, std::string expected, std::string actual) {
  Difference difference;
  difference.field = std::move(field);
  difference.expected = std::move(expected);
  difference.actual = std::move(actual);
  return difference;
}

void place_at(Comparison& comparison, int64_t iteration) {
  for (Difference& difference : comparison.differences) difference.iteration = iteration;
}

bool same_bytes(const fs::path& a, const fs::path& b) {
  std::ifstream x(a, std::ios::binary), y(b, std::ios::binary);
  if (!x || !y) return false;
  std::vector<char> from_x(1 << 20), from_y(1 << 20);
  for (;;) {
    x.read(from_x.data(), static_cast<std::streamsize>(from_x.size()));
    y.read(from_y.data(), static_cast<std::streamsize>(from_y.size()));
    if (x.gcount() != y.gcount()) return false;
    if (std::memcmp(from_x.data(), from_y.data(), static_cast<std::size_t>(x.gcount())) != 0) return false;
    if (!x && !y) return true;
  }
}

void compare_leaves(const CheckpointInfo& expected, const CheckpointInfo& actual, const std::string& part,
                    Comparison& comparison) {
  const gantry::State x = gantry::read_checkpoint(expected, part), y = gantry::read_checkpoint(actual, part);
  const std::size_t before = comparison.differences.size();
  for (const gantry::State::Leaf& leaf : x.leaves()) {
    if (!y.has(leaf.path)) {
      comparison.differences.push_back(plain_difference(leaf.path, gantry::tensor_text(leaf.value), "nothing"));
      continue;
    }
    const at::Tensor& other = y.tensor(leaf.path);
    if (gantry::tensor_text(other) != gantry::tensor_text(leaf.value)) {
      comparison.differences.push_back(
          plain_difference(leaf.path, gantry::tensor_text(leaf.value), gantry::tensor_text(other)));
    } else if (auto numbers = number_difference(leaf.value, other, 0)) {
      comparison.differences.push_back(plain_difference(leaf.path, numbers->expected, numbers->actual));
      comparison.differences.back().numbers = std::move(numbers);
    }
  }
  for (const gantry::State::Leaf& leaf : y.leaves())
    if (!x.has(leaf.path))
      comparison.differences.push_back(plain_difference(leaf.path, "nothing", gantry::tensor_text(leaf.value)));
  if (comparison.differences.size() == before)
    comparison.differences.push_back(
        plain_difference(part + ".safetensors", "its bytes", "others, with the same values"));
}

Comparison compare_checkpoint(const CheckpointInfo& expected, const CheckpointInfo& actual) {
  Comparison comparison;
  comparison.kind = Comparison::Kind::checkpoint;
  comparison.name = expected.name;
  comparison.entries = 1;
  std::vector<std::string> parts{"model", "optimizer", "state"};
  // A stop in an evaluation or a test saves the same iteration again, at another place of the flow.
  if (expected.phase != actual.phase) {
    comparison.note = gantry::cat("saved where the next thing was ", expected.phase, ", and ", actual.phase,
                                  " in the interrupted run: model and optimizer alone are compared");
    parts.pop_back();
  }
  for (const std::string& part : parts) {
    const std::string file = part + ".safetensors";
    ++comparison.values;
    if (!same_bytes(fs::path(expected.path) / file, fs::path(actual.path) / file))
      compare_leaves(expected, actual, part, comparison);
  }
  place_at(comparison, expected.iteration);
  return comparison;
}

}  // namespace

std::optional<Recording> find_recording(const std::string& work_dir, const std::string& label) {
  const std::string path = gantry::cat(work_dir, "/recordings/", label, ".jsonl");
  std::error_code problem;
  if (!fs::exists(path, problem)) return std::nullopt;
  return gantry::read_recording(path);
}

std::vector<Comparison> compare_all_recordings(const std::string& expected_dir, const std::string& actual_dir) {
  std::set<std::string> all = labels(expected_dir);
  all.merge(labels(actual_dir));
  std::vector<Comparison> comparisons;
  for (const std::string& label : all) {
    const std::optional<Recording> expected = find_recording(expected_dir, label),
                                   actual = find_recording(actual_dir, label);
    if ((expected.has_value() && of_process(*expected)) || (actual.has_value() && of_process(*actual))) continue;
    Comparison comparison;
    if (expected.has_value() && actual.has_value())
      comparison = compare_recordings(*expected, *actual);
    else
      comparison.differences.push_back(plain_difference("recording", expected.has_value() ? "there" : "nothing",
                                                        actual.has_value() ? "there" : "nothing"));
    comparison.name = label;
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

Comparison compare_restored(const Run& segment, const std::string& scratch) {
  Comparison comparison;
  comparison.kind = Comparison::Kind::restored;
  comparison.name = segment.name;
  if (segment.from.has_value()) comparison.name += ", from " + segment.from->name;
  if (!segment.from.has_value()) {
    comparison.note = "began afresh: there was no checkpoint";
    return comparison;
  }
  const std::optional<Recording> restored = find_recording(segment.work_dir, kRestored);
  if (!restored.has_value() || restored->entries.empty()) {
    comparison.differences.push_back(plain_difference("recording", segment.from->name, "nothing was restored"));
    return comparison;
  }
  // The recorder's own way to write makes both comparable.
  gantry::RecordingWriter writer(scratch, kRestored, restored->tolerance, restored->tolerance > 0);
  writer.add(Recording::Entry(), gantry::read_checkpoint(*segment.from));
  writer.flush();
  const Recording saved = gantry::read_recording(scratch + ".jsonl");
  comparison.entries = 1;
  Recording::Entry of_no_event = saved.entries.front();
  of_no_event.event = -1;
  compare_values(saved, of_no_event, *restored, restored->entries.back(), comparison);
  place_at(comparison, segment.from->iteration);
  return comparison;
}

std::vector<Comparison> compare_stop_and_resume(const std::vector<Job::Hook>& hooks, const Run& stopped,
                                                const Run& resumed) {
  std::map<std::string, std::vector<std::string>> stop, resume;
  std::vector<std::string> names;
  for (const Job::Hook& hook : hooks) {
    if (hook.mode.empty()) continue;
    if (std::find(names.begin(), names.end(), hook.name) == names.end()) names.push_back(hook.name);
    (hook.mode == "STOP" ? stop : resume)[hook.name].push_back(hook.label);
  }
  std::vector<Comparison> comparisons;
  for (const std::string& name : names) {
    for (std::size_t i = 0; i < std::min(stop[name].size(), resume[name].size()); ++i) {
      const std::optional<Recording> before = find_recording(stopped.work_dir, stop[name][i]),
                                     after = find_recording(resumed.work_dir, resume[name][i]);
      Comparison comparison;
      comparison.kind = Comparison::Kind::stop_resume;
      comparison.name = gantry::cat(resumed.name, ", ", name);
      if (before.has_value() && after.has_value() && !before->entries.empty() && !after->entries.empty()) {
        comparison.entries = 1;
        compare_values(*before, before->entries.back(), *after, after->entries.back(), comparison);
        place_at(comparison, before->entries.back().iteration);
      } else if (!before.has_value() || before->entries.empty()) {
        comparison.differences.push_back(plain_difference("metadata of STOP", "an entry", "nothing"));
      } else {
        comparison.note = "no training epoch was entered after it";
      }
      comparisons.push_back(std::move(comparison));
    }
  }
  return comparisons;
}

std::vector<Comparison> compare_checkpoints(const std::string& expected_dir, const std::string& actual_dir) {
  const gantry::CheckpointStore expected(expected_dir + "/checkpoints"), actual(actual_dir + "/checkpoints");
  std::map<std::string, CheckpointInfo> others;
  for (CheckpointInfo& info : actual.list()) others.emplace(info.name, std::move(info));
  const std::vector<CheckpointInfo> all = expected.list();
  std::vector<Comparison> comparisons;
  for (const CheckpointInfo& info : all) {
    const auto other = others.find(info.name);
    if (other != others.end()) {
      comparisons.push_back(compare_checkpoint(info, other->second));
    } else if (&info == &all.back()) {
      Comparison last;
      last.kind = Comparison::Kind::checkpoint;
      last.name = info.name;
      last.differences.push_back(plain_difference("the last checkpoint", "there", "nothing"));
      comparisons.push_back(std::move(last));
    }
  }
  const std::string best = expected.linked("best"), other_best = actual.linked("best");
  if (best != other_best) {
    Comparison link;
    link.kind = Comparison::Kind::checkpoint;
    link.name = "best";
    link.differences.push_back(plain_difference("the link best", best.empty() ? "nothing" : best,
                                                other_best.empty() ? "nothing" : other_best));
    comparisons.push_back(std::move(link));
  }
  return comparisons;
}

std::vector<std::string> machine_differences(const std::vector<const Run*>& runs) {
  std::vector<std::string> lines;
  const Run* first = nullptr;
  for (const Run* run : runs) {
    if (!run->newest.has_value()) continue;
    if (first == nullptr) first = run;
    for (const auto& [name, value] : first->newest->machine)
      for (const auto& [other_name, other] : run->newest->machine)
        if (name == other_name && value != other)
          lines.push_back(gantry::cat(name, ": ", value, " in the ", first->name, ", ", other, " in ", run->name));
  }
  return lines;
}

}  // namespace stop_and_go
