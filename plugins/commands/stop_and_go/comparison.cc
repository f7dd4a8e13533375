#include "comparison.h"

#include <gantry/tensor_text.h>
#include <gantry/text.h>

#include <algorithm>
#include <map>

namespace stop_and_go {
namespace {

using gantry::Recording;

bool same_type(const Recording::Value& a, const Recording::Value& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

std::string value_text(const Recording::Value& value, bool with_type) {
  std::string text = value.text.empty() ? "digest " + value.digest : value.text;
  if (value.dtype == "text" && !value.text.empty()) return gantry::cat("'", text, "'");
  return with_type ? gantry::cat(value.dtype, " ", gantry::shape_text(value.shape), ", ", text) : text;
}

std::string entry_text(const Recording::Entry& entry) {
  return gantry::cat(entry.mode, ", epoch ", entry.epoch, ", iteration ", entry.iteration, ", batch ", entry.batch);
}

Difference at_entry(const Recording::Entry& entry, std::string field, std::string expected, std::string actual) {
  Difference difference;
  difference.event = entry.event;
  difference.mode = entry.mode;
  difference.epoch = entry.epoch;
  difference.iteration = entry.iteration;
  difference.batch = entry.batch;
  difference.field = std::move(field);
  difference.expected = std::move(expected);
  difference.actual = std::move(actual);
  return difference;
}

bool floating(const std::string& dtype) { return dtype.starts_with("float") || dtype.starts_with("bfloat"); }

}  // namespace

std::string Difference::place() const {
  if (event < 0) return {};
  return gantry::cat("event ", event, ": ", mode, ", epoch ", epoch, ", iteration ", iteration, ", batch ", batch);
}

void compare_values(const Recording& expected, const Recording::Entry& expected_entry, const Recording& actual,
                    const Recording::Entry& actual_entry, Comparison& comparison) {
  std::map<std::string, const Recording::Value*> others;
  for (const Recording::Value& value : actual_entry.values) others[value.field] = &value;
  for (const Recording::Value& value : expected_entry.values) {
    ++comparison.values;
    const auto found = others.find(value.field);
    if (found == others.end()) {
      comparison.differences.push_back(at_entry(expected_entry, value.field, value_text(value, true), "nothing"));
      continue;
    }
    const Recording::Value& other = *found->second;
    others.erase(found);
    const bool typed = same_type(value, other);
    if (typed && value.digest == other.digest) continue;
    std::optional<NumberDifference> numbers;
    if (typed && value.dtype != "text" && value.stored_at >= 0 && other.stored_at >= 0) {
      const double tolerance = floating(value.dtype) ? expected.tolerance : 0;
      numbers = number_difference(expected.whole(value), actual.whole(other), tolerance);
      if (!numbers.has_value() && tolerance > 0) {
        ++comparison.within_tolerance;
        continue;
      }
    }
    comparison.differences.push_back(
        at_entry(expected_entry, value.field, value_text(value, !typed), value_text(other, !typed)));
    comparison.differences.back().numbers = std::move(numbers);
  }
  for (const Recording::Value& value : actual_entry.values)
    if (others.contains(value.field))
      comparison.differences.push_back(at_entry(expected_entry, value.field, "nothing", value_text(value, true)));
}

Comparison compare_recordings(const Recording& expected, const Recording& actual) {
  Comparison comparison;
  if (expected.recorder != actual.recorder || expected.tolerance != actual.tolerance) {
    Difference difference;
    difference.field = "recorder";
    difference.expected = gantry::cat(expected.recorder, " with TOLERANCE ", gantry::number_text(expected.tolerance));
    difference.actual = gantry::cat(actual.recorder, " with TOLERANCE ", gantry::number_text(actual.tolerance));
    comparison.differences.push_back(std::move(difference));
    return comparison;
  }
  const std::size_t both = std::min(expected.entries.size(), actual.entries.size());
  for (std::size_t i = 0; i < both; ++i) {
    const Recording::Entry &x = expected.entries[i], &y = actual.entries[i];
    ++comparison.entries;
    if (x.event != y.event)
      comparison.differences.push_back(at_entry(x, "event", gantry::cat(x.event), gantry::cat(y.event)));
    if (entry_text(x) != entry_text(y))
      comparison.differences.push_back(at_entry(x, "place", entry_text(x), entry_text(y)));
    compare_values(expected, x, actual, y, comparison);
    if (!comparison.equal()) return comparison;
  }
  if (expected.entries.size() > both)
    comparison.differences.push_back(
        at_entry(expected.entries[both], "entry", entry_text(expected.entries[both]), "nothing"));
  if (actual.entries.size() > both)
    comparison.differences.push_back(
        at_entry(actual.entries[both], "entry", "nothing", entry_text(actual.entries[both])));
  return comparison;
}

}  // namespace stop_and_go
