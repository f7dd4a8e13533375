#pragma once

#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "flow_value.h"
#include "gantry/compose.h"
#include "gantry/text.h"

/// Configuration files in memory: each line is "KEY: value" of the file's map, the value in flow style.

inline gantry::Config flow(const std::string& text, const std::string& file = "t.yaml", int line = 1) {
  return gantry::parse_flow_value(text, {file, line, 1});
}

inline gantry::Config file_config(const std::string& file, const std::string& text) {
  std::vector<gantry::Config::Entry> entries;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    entries.push_back({line.substr(0, colon), {file, number, 1}, flow(line.substr(colon + 2), file, number)});
  }
  return gantry::Config::map(std::move(entries), {file, 1, 1});
}

struct Files {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::string> variables = {};

  gantry::Config compose(const std::string& path, const std::vector<std::string>& overrides = {}) {
    const gantry::ComposeSources sources{[this](const std::string& name) {
                                           const auto found = texts.find(name);
                                           if (found == texts.end())
                                             throw gantry::ConfigError({name, 0, 0}, "no such file");
                                           return file_config(name, found->second);
                                         },
                                         [this](const std::string& name) -> std::optional<std::string> {
                                           const auto found = variables.find(name);
                                           if (found == variables.end()) return std::nullopt;
                                           return found->second;
                                         }};
    problems.clear();
    return gantry::compose(path, overrides, sources, problems);
  }

  std::vector<gantry::ConfigError> problems = {};
};

inline std::string text_of(const std::vector<gantry::ConfigError>& problems) {
  std::vector<std::string> lines;
  for (const gantry::ConfigError& problem : problems) lines.emplace_back(problem.what());
  return gantry::join(lines, "\n");
}
