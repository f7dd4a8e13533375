#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/resume.h"

/// Runs with test callbacks, and what those recorded: their lines, read without the SDK.

namespace e2e {

struct RecordedValue {
  std::string field, dtype;
  std::vector<int64_t> shape;
  std::string digest, text;

  double number() const { return std::stod(text); }
};

struct RecordedEntry {
  int64_t event = 0;
  std::string mode;
  int64_t epoch = 0, iteration = 0, batch = 0;
  std::vector<RecordedValue> values;

  const RecordedValue& value(const std::string& field) const {
    for (const RecordedValue& value : values)
      if (value.field == field) return value;
    FAIL("there is no field " << field);
    return values.front();
  }
};

inline std::string recording_of(const std::string& label) { return "work/recordings/" + label + ".jsonl"; }

inline std::vector<RecordedEntry> recorded(const Job& job, const std::string& label) {
  std::vector<RecordedEntry> entries;
  const std::vector<std::string> lines = job.lines(recording_of(label));
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto line = nlohmann::json::parse(lines[i]);
    RecordedEntry entry{line.at("event"),     line.at("mode"),  line.at("epoch"),
                        line.at("iteration"), line.at("batch"), {}};
    for (const auto& value : line.at("values"))
      entry.values.push_back({value.at(0), value.at(1), value.at(2), value.at(3), value.at(4)});
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// The job of resume.h with these hooks before its own; one line each.
inline std::string job_with(const std::vector<std::string>& hooks, std::string config = kJob) {
  std::string lines = "  HOOKS:\n";
  for (const std::string& hook : hooks) lines += "    - " + hook + "\n";
  return replaced(std::move(config), "  HOOKS:\n", lines);
}

/// As its text says it, without a loss.
inline double double_of_bits(const std::string& hex_of_float) {
  const auto bits = static_cast<uint32_t>(std::stoul(hex_of_float, nullptr, 16));
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace e2e
