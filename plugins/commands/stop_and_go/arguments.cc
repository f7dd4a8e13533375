#include "arguments.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <sstream>

namespace stop_and_go {
namespace {

namespace po = boost::program_options;

const std::vector<std::string> kSignals = {"TERM", "INT", "USR1", "USR2", "HUP"};

[[noreturn]] void fail(const std::string& message) {
  throw gantry::Error("gantry stop-and-go: " + message + "\ntry: gantry stop-and-go --help");
}

po::options_description options() {
  po::options_description all("Options");
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  all.add_options()                //
      ("stop-at", text("PLACES"),  //
       "stop at these places, such as 7,13,eval:3,test:1: after an iteration of the training, after "
       "a batch of all evaluations or tests; 0: before the first iteration")                     //
      ("every", text("N"), "stop after every N iterations of the training")                      //
      ("random", text("K"), "stop at K places drawn from all there are (default: 3)")            //
      ("seed", text("S"), "what --random draws with (default: 1)")                               //
      ("signal", text("NAME"), "the signal that stops: TERM (default), INT, USR1, USR2 or HUP")  //
      ("kill", "stop with SIGKILL: the run goes on at its newest checkpoint, or afresh")         //
      ("mutate", text("ITEM"),
       "change one item of the checkpoint between two segments, which has to be noticed; list: show the items; all: "
       "each of them")                                                                             //
      ("whole", "keep whole values and not just digests, so that a difference shows its numbers")  //
      ("work-dir", text("DIR"), "where the runs write, and what they wrote stays; new or empty")   //
      ("json", text("FILE"), "write a report");
  return all;
}

int64_t whole_number(const std::string& option, const std::string& text, int64_t least) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc() || at != end || number < least)
    fail(gantry::cat("--", option, " is '", text, "': expected a whole number, ", least, " or more"));
  return number;
}

std::vector<Place> parse_places(const std::string& text) {
  std::vector<Place> places;
  std::istringstream in(text + ",");
  for (std::string item; std::getline(in, item, ',');) {
    try {
      places.push_back(parse_place(item));
    } catch (const gantry::Error& error) {
      fail(gantry::cat("--stop-at ", text, ": ", error.what()));
    }
    if (std::count(places.begin(), places.end(), places.back()) > 1)
      fail(gantry::cat("--stop-at ", text, ": ", places.back().text(), " is there twice"));
  }
  return places;
}

std::string parse_signal(const std::string& text) {
  const std::string name = text.starts_with("SIG") ? text.substr(3) : text;
  if (std::find(kSignals.begin(), kSignals.end(), name) == kSignals.end())
    fail(gantry::cat("--signal is '", text, "': expected ", gantry::join(kSignals, ", "),
                     name == "KILL" ? "; for SIGKILL write --kill" : ""));
  return name;
}

/// At most one of these.
void check_exclusive(const po::variables_map& given, const std::vector<const char*>& names) {
  std::string first;
  for (const char* name : names) {
    if (given.count(name) == 0) continue;
    if (!first.empty()) fail(gantry::cat("give --", first, " or --", name, ", not both"));
    first = name;
  }
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  std::vector<std::string> operands;
  po::options_description all = options();
  all.add_options()("operand", po::value(&operands));
  po::positional_options_description positional;
  positional.add("operand", -1);
  po::variables_map given;
  try {
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(words).options(all).positional(positional).style(style).run(), given);
    po::notify(given);
  } catch (const po::error& error) {
    fail(error.what());
  }
  if (operands.empty()) fail("which configuration? Give its path");
  arguments.config = operands.front();
  arguments.overrides.assign(operands.begin() + 1, operands.end());
  for (const std::string& text : arguments.overrides)
    if (text.find('=') == std::string::npos)
      fail(gantry::cat("unexpected argument '", text, "': what follows the configuration is KEY=VALUE"));
  check_exclusive(given, {"stop-at", "every", "random"});
  check_exclusive(given, {"signal", "kill"});
  check_exclusive(given, {"mutate", "kill"});
  check_exclusive(given, {"mutate", "every"});
  check_exclusive(given, {"mutate", "random"});
  check_exclusive(given, {"stop-at", "seed"});
  check_exclusive(given, {"every", "seed"});

  const auto text = [&](const char* name) {
    return given.count(name) == 0 ? std::string() : given[name].as<std::string>();
  };
  if (given.count("stop-at") > 0) {
    arguments.stops = Arguments::Stops::at_places;
    arguments.places = parse_places(text("stop-at"));
  }
  if (given.count("every") > 0) {
    arguments.stops = Arguments::Stops::every;
    arguments.every = whole_number("every", text("every"), 1);
  }
  if (given.count("random") > 0) arguments.random = whole_number("random", text("random"), 1);
  if (given.count("seed") > 0) arguments.seed = static_cast<uint64_t>(whole_number("seed", text("seed"), 0));
  if (given.count("signal") > 0) arguments.signal = parse_signal(text("signal"));
  if (given.count("kill") > 0) arguments.signal = "KILL";
  arguments.whole = given.count("whole") > 0;
  arguments.mutate = text("mutate");
  arguments.work_dir = text("work-dir");
  arguments.json = text("json");
  for (const char* name : {"mutate", "work-dir", "json"})
    if (given.count(name) > 0 && text(name).empty()) fail(gantry::cat("--", name, " is empty"));
  if (!arguments.mutate.empty() && arguments.places.size() > 1)
    fail("--mutate changes the checkpoint of one stop: give --stop-at one place, or none");
  return arguments;
}

std::string usage_text() {
  std::ostringstream text;
  text
      << "usage: gantry stop-and-go CONFIG [KEY=VALUE...] [options]\n"
         "\n"
         "Proves that stopping and going on changes nothing of a training. Runs CONFIG once from start to end, and\n"
         "once more in several processes, each stopped by a signal and gone on with as `gantry run CONFIG\n"
         "SOLVER.RESUME_FROM=auto` does, and compares both, bit for bit: what hooks for the purpose (test callbacks,\n"
         "added to CONFIG's own) recorded of every iteration, evaluation and step; what each process had restored "
         "with\n"
         "the checkpoint that it went on from; all checkpoints that both runs have. CONFIG's own WORK_DIR is not\n"
         "touched: the runs write into a temporary folder, which stays when there is a difference.\n"
         "\n"
      << options()
      << "\n"
         "A stop waits for the end of the window of batches that make one optimizer step.\n"
         "\n"
         "--mutate shows that a difference would be seen: it changes one value of the checkpoint between two\n"
         "segments. ITEM is a path of the state, such as optimizer/fc.weight/exp_avg, or a group, such as rng.\n"
         "\n"
         "--json writes an object with config, result (equal, different, failed, mutated), exit_code, work_dir, "
         "iterations,\n"
         "steps, entries, values, checkpoints, stops, comparisons, problems, repeats_itself and mutations; the README\n"
         "of this plugin has its parts.\n"
         "\n"
         "Exit codes: 0 equal; 1 different, or a run failed, or it was not shown that what had to be compared was;\n"
         "2 wrong arguments or configuration. With --mutate: 1 the change was noticed and named (all of them were),\n"
         "0 it was not.\n";
  return text.str();
}

}  // namespace stop_and_go
