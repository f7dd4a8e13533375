#include "report.h"

#include <gantry/text.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>

namespace stop_and_go {
namespace {

constexpr std::size_t kShownDifferences = 5;
constexpr std::size_t kNameWidth = 58;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

int order(Comparison::Kind kind) {
  switch (kind) {
    case Comparison::Kind::restored:
      return 0;
    case Comparison::Kind::stop_resume:
      return 1;
    case Comparison::Kind::recorder:
      return 2;
    case Comparison::Kind::checkpoint:
      break;
  }
  return 3;
}

auto key(const Comparison& comparison) {
  const Difference& first = comparison.differences.front();
  return std::tuple(first.iteration, order(comparison.kind), first.event);
}

const char* title(Comparison::Kind kind) {
  switch (kind) {
    case Comparison::Kind::recorder:
      return "recorded, as in the continuous run";
    case Comparison::Kind::restored:
      return "restored, as in the checkpoint";
    case Comparison::Kind::stop_resume:
      return "after going on, as before the stop";
    case Comparison::Kind::checkpoint:
      break;
  }
  return "checkpoints, as in the continuous run";
}

const char* expected_word(Comparison::Kind kind) {
  switch (kind) {
    case Comparison::Kind::restored:
      return "in the checkpoint";
    case Comparison::Kind::stop_resume:
      return "before the stop";
    default:
      return "continuous";
  }
}
const char* actual_word(Comparison::Kind kind) {
  switch (kind) {
    case Comparison::Kind::restored:
      return "restored";
    case Comparison::Kind::stop_resume:
      return "after going on";
    default:
      return "interrupted";
  }
}

/// As much of a number as a table has room for.
std::string shown(const std::string& number) {
  return number.find_first_of(".e") == std::string::npos ? number
                                                         : gantry::short_number(std::strtod(number.c_str(), nullptr));
}

template <class F>
int64_t sum(const std::vector<Comparison>& comparisons, F&& f) {
  int64_t total = 0;
  for (const Comparison& comparison : comparisons) total += f(comparison);
  return total;
}

}  // namespace

std::string count_text(int64_t number, const std::string& noun) {
  return gantry::cat(grouped(number), " ", noun, number == 1 ? "" : "s");
}

bool Report::equal() const {
  return error.empty() && problems.empty() && !comparisons.empty() && first_difference(comparisons) == nullptr;
}
int64_t Report::entries() const {
  return sum(comparisons, [](const Comparison& c) { return c.kind == Comparison::Kind::checkpoint ? 0 : c.entries; });
}
int64_t Report::values() const {
  return sum(comparisons, [](const Comparison& c) { return c.kind == Comparison::Kind::checkpoint ? 0 : c.values; });
}
int64_t Report::checkpoints() const {
  return sum(comparisons, [](const Comparison& c) { return c.kind == Comparison::Kind::checkpoint ? c.entries : 0; });
}
int64_t Report::stops() const {
  return std::count_if(runs.begin(), runs.end(), [](const Run& run) { return run.stop.has_value(); });
}

const Comparison* first_difference(const std::vector<Comparison>& comparisons) {
  const Comparison* first = nullptr;
  for (const Comparison& comparison : comparisons)
    if (!comparison.equal() && (first == nullptr || key(comparison) < key(*first))) first = &comparison;
  return first;
}

std::string run_text(const Run& run, const std::string& done) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%7.1f s  ", run.ending.seconds);
  return gantry::cat("  ", padded(run.name, 22), seconds, done, "\n");
}

std::string comparisons_text(const std::vector<Comparison>& comparisons) {
  std::string text;
  std::optional<Comparison::Kind> kind;
  for (const Comparison& comparison : comparisons) {
    if (kind != comparison.kind) {
      kind = comparison.kind;
      const bool of_files = kind == Comparison::Kind::checkpoint;
      text += gantry::cat("\n  ", padded(title(*kind), kNameWidth + 2), right(of_files ? "" : "entries", 9),
                          right(of_files ? "files" : "values", 11), "\n");
    }
    const bool of_files = kind == Comparison::Kind::checkpoint;
    text +=
        gantry::cat("    ", padded(comparison.name, kNameWidth), right(of_files ? "" : grouped(comparison.entries), 9),
                    right(grouped(comparison.values), 11), "  ");
    if (!comparison.equal())
      text += "DIFFERENT";
    else if (comparison.entries == 0)
      text += "-";
    else if (comparison.within_tolerance > 0)
      text += gantry::cat("equal, ", grouped(comparison.within_tolerance), " within TOLERANCE");
    else
      text += "equal";
    if (!comparison.note.empty()) text += gantry::cat("  (", comparison.note, ")");
    text += "\n";
  }
  return text;
}

std::string difference_text(const Comparison& comparison, const std::string& actual) {
  const Difference& first = comparison.differences.front();
  std::string text = gantry::cat("  ", comparison.name);
  if (!first.place().empty()) text += gantry::cat(", ", first.place());
  text += "\n";
  for (std::size_t i = 0; i < std::min(comparison.differences.size(), kShownDifferences); ++i) {
    const Difference& difference = comparison.differences[i];
    text += gantry::cat("    ", difference.field, "\n");
    text += gantry::cat("      ", padded(expected_word(comparison.kind), 18), difference.expected, "\n");
    text += gantry::cat("      ", padded(actual.empty() ? actual_word(comparison.kind) : actual, 18), difference.actual,
                        "\n");
    if (difference.numbers.has_value()) text += gantry::cat("      ", difference.numbers->text(), "\n");
  }
  if (comparison.differences.size() > kShownDifferences)
    text += gantry::cat(
        "    and ", count_text(static_cast<int64_t>(comparison.differences.size() - kShownDifferences), "more value"),
        "\n");
  return text;
}

std::string verdict_text(const Report& report) {
  const std::string compared =
      gantry::cat(count_text(report.iterations, "iteration"), ", ", count_text(report.steps, "step"), "; compared ",
                  grouped(report.entries()), report.entries() == 1 ? " entry" : " entries", " with ",
                  count_text(report.values(), "value"), " and ", count_text(report.checkpoints(), "checkpoint"));
  const Comparison* first = first_difference(report.comparisons);
  std::string text = "\n";
  if (first == nullptr && report.problems.empty()) {
    text +=
        gantry::cat("EQUAL: ", report.stops() == 1 ? "one stop changes" : gantry::cat(report.stops(), " stops change"),
                    " nothing (", compared, ")\n");
    return text;
  }
  if (first == nullptr) {
    text += gantry::cat("NOT SHOWN TO BE EQUAL (", compared, ")\n");
    for (const std::string& problem : report.problems) text += gantry::cat("  ", problem, "\n");
    return text;
  }
  text += gantry::cat("DIFFERENT (", compared, "). First:\n", difference_text(*first));
  std::vector<const Comparison*> others;
  for (const Comparison& comparison : report.comparisons)
    if (!comparison.equal() && &comparison != first) others.push_back(&comparison);
  std::sort(others.begin(), others.end(), [](const Comparison* a, const Comparison* b) { return key(*a) < key(*b); });
  if (!others.empty()) text += "Then:\n";
  for (const Comparison* other : others) {
    const Difference& difference = other->differences.front();
    text += gantry::cat("  ", other->name, difference.place().empty() ? "" : ", " + difference.place(), ": ",
                        difference.field, ": ");
    text += difference.numbers.has_value() ? difference.numbers->text()
                                           : gantry::cat(difference.expected, " and ", difference.actual);
    text += "\n";
  }
  for (const std::string& problem : report.problems) text += gantry::cat("  ", problem, "\n");
  return text;
}

std::string change_text(const Report::Change& change) {
  const Mutation& mutation = change.mutation;
  std::string text = gantry::cat("  ", padded(mutation.path, 56));
  if (!mutation.changed()) return gantry::cat(text, mutation.type, ": there is nothing to change in it\n");
  text += padded(gantry::cat(shown(mutation.before), " -> ", shown(mutation.after)), 24);
  if (!change.noticed) return text + "NOT NOTICED\n";
  return gantry::cat(text, change.named ? "noticed: " : "noticed, BUT NOT NAMED: ", change.how, "\n");
}

}  // namespace stop_and_go
