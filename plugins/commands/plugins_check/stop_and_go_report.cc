#include "stop_and_go_report.h"

#include <gantry/error.h>
#include <gantry/json_value.h>
#include <gantry/text.h>

#include <limits>
#include <utility>
#include <variant>

namespace plugins_check {

namespace {

using gantry::JsonValue;

std::string text_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.member(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->scalar);
  return text == nullptr ? std::string() : *text;
}

/// -1 for null.
int64_t number_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.member(name);
  if (value == nullptr) return -1;
  if (const auto* number = std::get_if<uint64_t>(&value->scalar)) return static_cast<int64_t>(*number);
  if (const auto* number = std::get_if<int64_t>(&value->scalar)) return *number;
  return -1;
}

std::string difference_text(const std::string& recorder, const JsonValue& difference) {
  std::string expected = text_of(difference, "expected"), actual = text_of(difference, "actual");
  std::string field = text_of(difference, "field");
  const JsonValue* numbers = difference.member("numbers");
  if (numbers != nullptr && numbers->kind == JsonValue::Kind::object) {
    expected = text_of(*numbers, "expected");
    actual = text_of(*numbers, "actual");
    field += text_of(*numbers, "index");
  }
  const int64_t event = number_of(difference, "event");
  const std::string place =
      event < 0
          ? std::string()
          : gantry::cat(", ", text_of(difference, "mode"), ", epoch ", number_of(difference, "epoch"), ", iteration ",
                        number_of(difference, "iteration"), ", batch ", number_of(difference, "batch"));
  return gantry::cat(recorder, place, ": ", field, " is ", actual, ", and ", expected, " without a stop");
}

/// The earliest of what recorders saw; where they saw nothing, of what was restored and saved.
const JsonValue* first_difference(const JsonValue& comparisons) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const JsonValue* first = nullptr;
  std::pair<int64_t, int64_t> earliest;
  for (const JsonValue& comparison : comparisons.items) {
    const JsonValue* difference = comparison.member("first");
    if (difference == nullptr || difference->kind != JsonValue::Kind::object) continue;
    const bool seen = number_of(*difference, "event") >= 0;
    const std::pair<int64_t, int64_t> place{seen ? number_of(*difference, "iteration") : kNever,
                                            seen ? number_of(*difference, "event") : kNever};
    if (first != nullptr && place >= earliest) continue;
    first = &comparison;
    earliest = place;
  }
  return first;
}

}  // namespace

StopAndGoReport read_stop_and_go_report(const std::string& json) {
  StopAndGoReport report;
  JsonValue value;
  try {
    value = gantry::read_json(json, 16);
  } catch (const gantry::Error& error) {
    report.text = gantry::cat("gantry stop-and-go left no report: ", error.what());
    return report;
  }
  if (const JsonValue* repeats = value.member("repeats_itself"))
    if (const bool* known = std::get_if<bool>(&repeats->scalar)) report.repeats = *known;
  const JsonValue* comparisons = value.member("comparisons");
  const JsonValue* first = comparisons == nullptr ? nullptr : first_difference(*comparisons);
  if (first != nullptr) {
    report.differs = true;
    report.text = difference_text(text_of(*first, "name"), *first->member("first"));
    return report;
  }
  report.text = text_of(value, "error");
  if (const JsonValue* problems = value.member("problems"); problems != nullptr && report.text.empty())
    for (const JsonValue& problem : problems->items)
      if (const auto* text = std::get_if<std::string>(&problem.scalar))
        report.text += gantry::cat(report.text.empty() ? "" : "; ", *text);
  return report;
}

}  // namespace plugins_check
