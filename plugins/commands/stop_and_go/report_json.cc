#include <gantry/json.h>
#include <gantry/text.h>

#include "report.h"

namespace stop_and_go {
namespace {

using gantry::cat;
using gantry::json_array;
using gantry::json_object;
using gantry::json_string;

std::string boolean(bool value) { return value ? "true" : "false"; }
std::string text_or_null(const std::string& text) { return text.empty() ? "null" : json_string(text); }

const char* kind_name(Comparison::Kind kind) {
  switch (kind) {
    case Comparison::Kind::recorder:
      return "recorder";
    case Comparison::Kind::restored:
      return "restored";
    case Comparison::Kind::stop_resume:
      return "stop_resume";
    case Comparison::Kind::checkpoint:
      break;
  }
  return "checkpoint";
}

std::string stop_json(const Run& run) {
  return json_object({{"asked", json_string(run.stop->place.text())},
                      {"iteration", cat(run.stop->iteration)},
                      {"cause", json_string(run.cause)},
                      {"exit_code", run.ending.signal == 0 ? cat(run.ending.exit_code) : "null"},
                      {"signal", run.ending.signal == 0 ? "null" : json_string(signal_text(run.ending.signal))},
                      {"checkpoint", run.newest.has_value() ? json_string(run.newest->name) : "null"}});
}

std::string difference_json(const Difference& difference) {
  std::string numbers = "null";
  if (difference.numbers.has_value())
    numbers = json_object({{"count", cat(difference.numbers->count)},
                           {"of", cat(difference.numbers->of)},
                           {"index", json_string(difference.numbers->index)},
                           {"expected", json_string(difference.numbers->expected)},
                           {"actual", json_string(difference.numbers->actual)},
                           {"max_absolute", gantry::json_number(difference.numbers->max_absolute)},
                           {"max_relative", gantry::json_number(difference.numbers->max_relative)},
                           {"ulps", difference.numbers->ulps.has_value() ? cat(*difference.numbers->ulps) : "null"}});
  const bool entry = difference.event >= 0;
  return json_object({{"event", entry ? cat(difference.event) : "null"},
                      {"mode", entry ? json_string(difference.mode) : "null"},
                      {"epoch", entry ? cat(difference.epoch) : "null"},
                      {"iteration", cat(difference.iteration)},
                      {"batch", entry ? cat(difference.batch) : "null"},
                      {"field", json_string(difference.field)},
                      {"expected", json_string(difference.expected)},
                      {"actual", json_string(difference.actual)},
                      {"numbers", numbers}});
}

std::string comparison_json(const Comparison& comparison) {
  return json_object({{"kind", json_string(kind_name(comparison.kind))},
                      {"name", json_string(comparison.name)},
                      {"entries", cat(comparison.entries)},
                      {"values", cat(comparison.values)},
                      {"within_tolerance", cat(comparison.within_tolerance)},
                      {"equal", boolean(comparison.equal())},
                      {"note", text_or_null(comparison.note)},
                      {"differences", cat(comparison.differences.size())},
                      {"first", comparison.equal() ? "null" : difference_json(comparison.differences.front())}});
}

std::string change_json(const Report::Change& change) {
  return json_object({{"path", json_string(change.mutation.path)},
                      {"type", json_string(change.mutation.type)},
                      {"before", text_or_null(change.mutation.before)},
                      {"after", text_or_null(change.mutation.after)},
                      {"noticed", boolean(change.noticed)},
                      {"named", boolean(change.named)},
                      {"how", text_or_null(change.how)}});
}

}  // namespace

std::string Report::json() const {
  std::vector<std::string> stopped, compared, mutated, texts;
  for (const Run& run : runs)
    if (run.stop.has_value()) stopped.push_back(stop_json(run));
  for (const Comparison& comparison : comparisons) compared.push_back(comparison_json(comparison));
  for (const Change& change : changes) mutated.push_back(change_json(change));
  for (const std::string& problem : problems) texts.push_back(json_string(problem));
  const bool different = first_difference(comparisons) != nullptr;
  const char* result = !changes.empty() ? "mutated" : different ? "different" : equal() ? "equal" : "failed";
  return json_object({{"config", json_string(config)},
                      {"result", json_string(result)},
                      {"exit_code", cat(exit_code)},
                      {"work_dir", text_or_null(work_dir)},
                      {"iterations", cat(iterations)},
                      {"steps", cat(steps)},
                      {"entries", cat(entries())},
                      {"values", cat(values())},
                      {"checkpoints", cat(checkpoints())},
                      {"stops", json_array(stopped)},
                      {"comparisons", json_array(compared)},
                      {"problems", json_array(texts)},
                      {"repeats_itself", repeats_itself.has_value() ? boolean(*repeats_itself) : "null"},
                      {"mutations", json_array(mutated)},
                      {"error", text_or_null(error)}});
}

}  // namespace stop_and_go
