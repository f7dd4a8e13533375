#include "arguments.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace plugins_check {

namespace {

constexpr int64_t kLongest = 86400;

[[noreturn]] void fail(const std::string& message) {
  throw gantry::Error("gantry plugins check: " + message + "\ntry: gantry plugins check --help");
}

std::chrono::seconds seconds_in(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || at != end || number < 1 || number > kLongest)
    fail(gantry::cat("--timeout is '", text, "': expected whole seconds, from 1 to ", kLongest));
  return std::chrono::seconds(number);
}

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

}  // namespace

std::string usage_text() {
  return "usage: gantry plugins check [options] FILE.so [NAME.KEY=VALUE...]\n"
         "\n"
         "Tries every component of a plugin, and says which lose something when a run stops and goes on. Each is\n"
         "loaded, built with its defaults in a small training, and run with `gantry stop-and-go`: stopped within an\n"
         "epoch, at an epoch's end and in an evaluation. Everything happens in processes of their own: a plugin that\n"
         "crashes or hangs is told apart. NAME.KEY=VALUE gives a component what has no default, or another value\n"
         "(paths: absolute ones):\n"
         "  gantry plugins check build/acme-drift.so acme/Drift.INTERVAL=2\n"
         "\n"
         "  ok         an interrupted run equals one that was not\n"
         "  forgets    it does not; what differs first, and what of the component is in the checkpoint\n"
         "  fails      it cannot be loaded, crashes, hangs or throws\n"
         "  not tried  it needs a value, or does not go with the small training: use `gantry stop-and-go` on your own\n"
         "             configuration\n"
         "\n"
         "  --json           print one JSON object\n"
         "  --timeout S      a process that takes longer hangs, in seconds (default: 120)\n"
         "  --work-dir DIR   keep the trainings, logs and reports there; new or empty\n"
         "\n"
         "Exit codes: 0 all ok or not tried, 1 something forgets or fails, 2 the file is no plugin for this program.\n";
}

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  std::vector<std::string> operands;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&](const std::string& option) -> std::string {
      if (word.size() > option.size()) return word.substr(option.size() + 1);
      if (++i == words.size()) fail(option + " needs a value");
      return words[i];
    };
    const auto is = [&](const std::string& option) { return word == option || word.starts_with(option + "="); };
    if (word == "--json")
      arguments.json = true;
    else if (word == "--load")
      arguments.load = true;
    else if (is("--timeout"))
      arguments.limit = seconds_in(value("--timeout"));
    else if (is("--work-dir"))
      arguments.work_dir = value("--work-dir");
    else if (word.starts_with('-'))
      fail("unknown option '" + word + "'");
    else
      operands.push_back(word);
  }
  if (operands.empty()) fail("expected a plugin's file");
  arguments.file = absolute(operands[0]);
  if (arguments.load) {
    if (operands.size() != 3) fail("--load takes FILE KIND NAME");
    arguments.kind = operands[1];
    arguments.name = operands[2];
    return arguments;
  }
  arguments.overrides.assign(operands.begin() + 1, operands.end());
  return arguments;
}

std::vector<Candidate> candidates(const gantry::PluginFile& file, const std::vector<std::string>& overrides) {
  std::vector<Candidate> all;
  for (const gantry::ComponentNote& note : file.note->components) all.push_back({file.path, note.kind, note.name, {}});
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) fail(gantry::cat("'", text, "' is no NAME.KEY=VALUE"));
    // A name may have dots: the longest that fits is meant.
    std::size_t longest = 0;
    for (const Candidate& candidate : all)
      if (text.substr(0, equals).starts_with(candidate.name + ".")) longest = std::max(longest, candidate.name.size());
    if (longest == 0)
      fail(gantry::cat("'", text, "' is for no component of this file, which provides ", file.provides()));
    for (Candidate& candidate : all)
      if (candidate.name.size() == longest && text.starts_with(candidate.name + "."))
        candidate.given.emplace_back(text.substr(longest + 1, equals - longest - 1), text.substr(equals + 1));
  }
  return all;
}

}  // namespace plugins_check
