#include "trial.h"

#include <gantry/error.h>
#include <gantry/json_value.h>
#include <gantry/text.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "saved_state.h"
#include "stop_and_go_report.h"
#include "work_folder.h"

namespace plugins_check {

namespace {

/// Several processes, one after the other.
constexpr int kStopAndGoProcesses = 8;

/// Lines of a message as one.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c != '\n')
      line += c;
    else if (!line.ends_with(' '))
      line += ' ';
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// What a program that ended in order says about its failure: the first line of its last "error: ".
std::string error_of(const ChildEnd& end) {
  std::string found, last;
  std::istringstream in(end.err);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
    const std::size_t at = line.find("error: ");
    if (at != std::string::npos) found = line.substr(at + 7);
  }
  return found.empty() ? last : found;
}

/// What `gantry run --json` reports; of a process that could not print it, what stands on stderr.
std::string reported_error(const ChildEnd& end) {
  const std::size_t stop = end.out.find_last_not_of('\n');
  const std::size_t line = stop == std::string::npos ? std::string::npos : end.out.rfind('\n', stop);
  const std::string last = end.out.substr(line == std::string::npos ? 0 : line + 1);
  try {
    const gantry::JsonValue report = gantry::read_json(last, 16);
    const gantry::JsonValue* error = report.member("error");
    const gantry::JsonValue* what = error == nullptr ? nullptr : error->member("what");
    if (what != nullptr)
      if (const auto* text = std::get_if<std::string>(&what->scalar)) return *text;
  } catch (const gantry::Error&) {
  }
  return error_of(end);
}

/// A process that did not end in order; its last words, if it had any.
std::string violent_end(const char* when, const ChildEnd& end, std::chrono::seconds limit) {
  const std::string words = error_of(end);
  return gantry::cat(when, ": ", end.text(limit), words.empty() ? "" : "; its last words: ", words);
}

/// Of the harness's account of a process that failed: what went wrong, and what that process says about it.
std::string failure_text(const std::string& account) {
  const std::size_t error = account.find("error: ");
  const std::string what = account.substr(0, account.find('\n'));
  return error == std::string::npos
             ? what
             : gantry::cat(what, ": ", account.substr(error + 7, account.find('\n', error) - error - 7));
}

class Trial {
 public:
  Trial(const Candidate& candidate, const TrialSetup& setup) : candidate_(candidate), setup_(setup) {}

  Result run() {
    const std::optional<ComponentFacts> facts = load();
    if (!facts.has_value()) return result_;
    check_given(*facts);
    if (candidate_.kind == "command") return help();
    toy_ = make_toy_training(candidate_, *facts);
    if (!toy_.missing.empty())
      return is(Verdict::not_tried, gantry::cat("needs ", gantry::join(toy_.missing, ", "), ": give ", candidate_.name,
                                                '.', first_word(toy_.missing.front()), "=VALUE"));
    write_text(setup_.folder + "/toy.yaml", toy_.yaml);
    if (!train()) return result_;
    return stop_and_go();
  }

 private:
  static std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

  Result is(Verdict verdict, const std::string& why) {
    return result_ = {candidate_.kind, candidate_.name, verdict, one_line(why)};
  }

  ChildEnd child(const char* log, std::vector<std::string> words, int processes = 1) const {
    std::vector<std::string> command = setup_.program;
    command.insert(command.end(), words.begin(), words.end());
    // One that crashes leaves its temporary files: they go with the folder.
    const std::string temporary = setup_.folder + "/tmp";
    std::filesystem::create_directories(temporary);
    return run_child(
        {command, setup_.folder, setup_.folder + "/" + log, {{"TMPDIR", temporary}}, setup_.limit * processes},
        setup_.signals);
  }

  std::optional<ComponentFacts> load() {
    const ChildEnd end =
        child("load", {"plugins", "check", "--load", candidate_.file, candidate_.kind, candidate_.name});
    std::optional<ComponentFacts> facts = read_facts(end.out);
    if (end.exit_code < 0) {
      is(Verdict::fails, violent_end("when its file is loaded", end, setup_.limit));
      return std::nullopt;
    }
    if (end.exit_code != 0 || !facts.has_value()) {
      const std::string error = error_of(end);
      is(Verdict::fails, gantry::cat("cannot be loaded: ", error.empty() ? end.text(setup_.limit) : error));
      return std::nullopt;
    }
    return facts;
  }

  void check_given(const ComponentFacts& facts) const {
    for (const auto& [key, value] : candidate_.given) {
      const std::string declared = key.substr(0, key.find_first_of(".["));
      if (facts.key(declared) != nullptr) continue;
      std::vector<std::string> names;
      for (const ComponentFacts::Key& known : facts.keys) names.push_back(known.name);
      const std::vector<std::string> near = gantry::near_matches(declared, names);
      throw gantry::Error(gantry::cat(candidate_.kind, ' ', candidate_.name, " has no key '", declared, "'",
                                      near.empty() ? "" : gantry::cat("; did you mean '", near[0], "'?"),
                                      "; known: ", names.empty() ? "none" : gantry::join(names, ", ")));
    }
  }

  Result help() {
    std::vector<std::string> words;
    std::istringstream in(candidate_.name);
    for (std::string word; std::getline(in, word, '.');) words.push_back(word);
    words.push_back("--help");
    const ChildEnd end = child("help", words);
    if (end.exit_code < 0) return is(Verdict::fails, violent_end("--help", end, setup_.limit));
    if (end.exit_code != 0)
      return is(Verdict::fails, gantry::cat("--help: ", end.text(setup_.limit), ": ", error_of(end)));
    if (end.out.empty()) return is(Verdict::fails, "--help prints nothing");
    return is(Verdict::ok, "");
  }

  /// A component that may be made for other data, or another model, than those of the toy training.
  bool expects_its_own_data() const {
    const std::string& kind = candidate_.kind;
    return kind != "hook" && kind != "optimizer" && kind != "lr_scheduler" && kind != "file_system";
  }

  bool train() {
    std::vector<std::string> words{"run", "toy.yaml", "--dry-run", "--json"};
    words.insert(words.end(), toy_.overrides.begin(), toy_.overrides.end());
    const ChildEnd end = child("train", words);
    if (end.exit_code < 0)
      is(Verdict::fails, violent_end("in a training of two iterations", end, setup_.limit));
    else if (end.exit_code == 2 || (end.exit_code == 1 && expects_its_own_data()))
      is(Verdict::not_tried, gantry::cat("it does not go with the toy training: ", reported_error(end)));
    else if (end.exit_code != 0)
      is(Verdict::fails, gantry::cat("in a training of two iterations: ", reported_error(end)));
    return end.exit_code == 0;
  }

  Result stop_and_go() {
    std::vector<std::string> words{"stop-and-go", "toy.yaml", "--work-dir", "stop-and-go",
                                   "--whole",     "--json",   "report.json"};
    words.insert(words.end(), toy_.stops.begin(), toy_.stops.end());
    words.insert(words.end(), toy_.overrides.begin(), toy_.overrides.end());
    const ChildEnd end = child("stop-and-go", words, kStopAndGoProcesses);
    if (end.exit_code == 0) return is(Verdict::ok, "");
    if (end.exit_code != 1) {
      const std::string how = end.exit_code < 0
                                  ? violent_end("stopped and gone on", end, kStopAndGoProcesses * setup_.limit)
                                  : gantry::cat("when it is stopped and goes on: ", error_of(end));
      return is(Verdict::fails, how);
    }
    const StopAndGoReport report = read_stop_and_go_report(read_text(setup_.folder + "/report.json"));
    if (!report.differs)
      return is(Verdict::fails, gantry::cat("when it is stopped and goes on: ", failure_text(report.text)));
    if (!report.repeats)
      return is(
          Verdict::fails,
          gantry::cat("two runs that nothing interrupts differ, so that going on cannot be judged: ", report.text));
    const std::string saved = saved_state_text(
        candidate_.kind, setup_.folder + "/stop-and-go/segment-1/checkpoints/last", toy_.state_prefixes);
    return is(Verdict::forgets, gantry::cat("after going on, ", report.text, "; ", saved));
  }

  const Candidate& candidate_;
  const TrialSetup& setup_;
  ToyTraining toy_;
  Result result_;
};

}  // namespace

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::forgets:
      return "forgets";
    case Verdict::fails:
      return "fails";
    case Verdict::not_tried:
      return "not tried";
  }
  return "";
}

Result try_component(const Candidate& candidate, const TrialSetup& setup) { return Trial(candidate, setup).run(); }

}  // namespace plugins_check
