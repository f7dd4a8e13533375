#include "job.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace stop_and_go {
namespace {

namespace fs = std::filesystem;
using gantry::Config;

constexpr const char* kLists[] = {"HOOKS", "TRAIN_HOOKS", "EVAL_HOOKS", "TEST_HOOKS"};
constexpr const char* kRecorders[] = {
    "LearningRateCallback", "GlobalStepStateCallback",  "ConsumedSamplesCallback", "OptimizerStateCallback",
    "TrainInputCallback",   "TrainOutputCallback",      "TrainLossCallback",       "ValidInputCallback",
    "ValidOutputCallback",  "ValidLossCallback",        "WeightsCallback",         "GradientCallback",
    "RngStateCallback",     "LrSchedulerStateCallback", "HookStateCallback",       "SampleIdCallback",
    "EventOrderCallback",   "LogValueCallback",         "RestoredStateCallback"};
constexpr char kStopAndGo[] = "TrainValInitConsumedSamplesStopAndGoCallback";
constexpr char kCheckpoint[] = "CheckpointHook";
constexpr char kSignalAt[] = "SignalAtCallback";

const gantry::SourceLocation kHere{"gantry stop-and-go", 0, 0};

Config text(const std::string& value) { return Config::scalar(value, kHere, /*quoted=*/true); }
Config plain(const std::string& value) { return Config::scalar(value, kHere); }

Config map(const std::vector<std::pair<std::string, Config>>& members) {
  std::vector<Config::Entry> entries;
  for (const auto& [key, value] : members) entries.push_back({key, kHere, value});
  return Config::map(std::move(entries), kHere);
}

std::vector<Config> list(const Config& solver, const char* key) {
  const Config* found = solver.find(key);
  return found == nullptr ? std::vector<Config>() : found->items();
}

std::string mode_of(const Config& hook) {
  const Config* mode = hook.find("MODE");
  return mode != nullptr && (mode->text() == "STOP" || mode->text() == "RESUME") ? mode->text() : "";
}

bool has_hook(const Config& solver, const std::string& name, const std::string& mode = "") {
  return std::any_of(std::begin(kLists), std::end(kLists), [&](const char* key) {
    const std::vector<Config> items = list(solver, key);
    return std::any_of(items.begin(), items.end(), [&](const Config& item) {
      return item.name() == name && (mode.empty() || mode_of(item) == mode);
    });
  });
}

bool overrides_key(const std::string& override_text, const std::string& key) {
  if (!override_text.starts_with(key)) return false;
  const char next = override_text.size() > key.size() ? override_text[key.size()] : '\0';
  return next == '=' || next == '.' || next == '[';
}

std::string value_text(const Config& solver, const char* key) {
  const Config* value = solver.find(key);
  return value == nullptr ? "" : value->text();
}

}  // namespace

Job::Job(const Arguments& arguments, gantry::CommandContext& context)
    : arguments_(arguments), program_(context.program()) {
  for (const std::string& text : arguments.overrides)
    if (overrides_key(text, "SOLVER") && text.starts_with("SOLVER="))
      throw gantry::Error("SOLVER=... replaces the whole solver: write a file that says so, and give that one");
  const Config resolved = context.resolve(arguments.config, arguments.overrides);
  solver_ = *resolved.find("SOLVER");
  env_ = *resolved.find("ENV");
  check_trains();
  check_signal();
  add_recorders(context);
  name_hooks();
  read_before();
}

void Job::check_trains() const {
  const std::string mode = value_text(solver_, "MODE");
  std::string reason;
  if (!mode.empty() && mode != "train")
    reason = gantry::cat("MODE is ", mode, ", one pass over data with a model that stays as it is");
  else if (!solver_.has("TRAIN_DATA"))
    reason = "it has no TRAIN_DATA";
  if (!reason.empty())
    throw gantry::Error(gantry::cat(arguments_.config, " trains nothing: ", reason,
                                    ". stop-and-go compares trainings; an evaluation is simply run again"));
}

void Job::check_signal() const {
  const Config* signals = env_.find("SIGNALS");
  if (arguments_.kill() || signals == nullptr) return;
  std::vector<std::string> names;
  for (const Config& item : signals->items()) names.push_back(item.text());
  for (const std::string& name : names)
    if (name == arguments_.signal || name == "SIG" + arguments_.signal) return;
  throw gantry::Error(gantry::cat("ENV.SIGNALS of ", arguments_.config, " is [", gantry::join(names, ", "), "]: SIG",
                                  arguments_.signal, " does not pause the run. Give --signal one of them, ",
                                  "--kill, or ENV.SIGNALS=[", arguments_.signal, "]"));
}

void Job::add_recorders(gantry::CommandContext& context) {
  const auto add = [&](const std::string& name, const std::string& mode) {
    if (has_hook(solver_, name, mode)) return;
    if (context.catalogue().find("hook", name, "", kHere) == nullptr)
      throw gantry::Error(gantry::cat("no plugin provides the hook ", name,
                                      ", which is needed to compare runs: is gantry-test-callbacks.so among the "
                                      "plugins? `gantry plugins list` shows them"));
    std::vector<std::pair<std::string, Config>> members{{"NAME", text(name)}};
    if (!mode.empty()) members.emplace_back("MODE", text(mode));
    if (arguments_.whole) members.emplace_back("VALUES", text("whole"));
    recorders_.push_back(map(members));
  };
  for (const char* name : kRecorders) add(name, "");
  for (const char* mode : {"STOP", "RESUME"}) add(kStopAndGo, mode);
  if (context.catalogue().find("hook", kSignalAt, "", kHere) == nullptr)
    throw gantry::Error(gantry::cat("no plugin provides the hook ", kSignalAt, ", which stops a run"));
  if (!has_hook(solver_, kCheckpoint))
    recorders_.push_back(map({{"NAME", text(kCheckpoint)}, {"SAVE_LAST", plain("true")}}));
}

void Job::name_hooks() {
  std::map<std::string, int> seen;
  const auto add = [&](const Config& item, bool added) {
    const std::string name = item.find("NAME")->text();
    const int count = ++seen[name];
    hooks_.push_back({count == 1 ? name : gantry::cat(name, "#", count), name, mode_of(item)});
    if (added) added_.push_back(hooks_.back().label);
  };
  for (const char* key : kLists) {
    for (const Config& item : list(solver_, key)) add(item, false);
    if (key != kLists[0]) continue;
    for (const Config& item : recorders_) add(item, true);
  }
}

void Job::read_before() {
  const std::string from = value_text(solver_, "RESUME_FROM");
  if (from.empty() || from == "auto") return;
  try {
    const gantry::State state = gantry::read_checkpoint(gantry::read_checkpoint_info(from), "state");
    before_.eval = state.integer("trainer/total_iter/eval");
    before_.test = state.integer("trainer/total_iter/test");
  } catch (const gantry::Error&) {
    // The run will say what is wrong with it.
  }
}

std::vector<std::string> Job::command(const Process& process) const {
  std::vector<std::string> overrides = arguments_.overrides;
  std::vector<std::pair<std::string, Config>> solver{{"WORK_DIR", text(process.work_dir)}};
  std::vector<std::string> replaced{"SOLVER.WORK_DIR"};
  if (process.resumes) {
    solver.emplace_back("RESUME_FROM", text("auto"));
    replaced.push_back("SOLVER.RESUME_FROM");
  }
  // In WORK_DIR, whatever the configuration says.
  const fs::path log_file = fs::path(value_text(solver_, "LOG_FILE")).lexically_normal();
  if (log_file.is_absolute() || log_file.string().starts_with("..")) {
    solver.emplace_back("LOG_FILE", text(log_file.filename().string()));
    replaced.push_back("SOLVER.LOG_FILE");
  }
  // Whole lists, so that it does not matter how the configuration came by its own.
  for (const char* key : kLists) {
    std::vector<Config> items = list(solver_, key);
    bool changed = false;
    for (Config& item : items) {
      if (item.name() != kCheckpoint) continue;
      item = item.with("SAVE_LAST", plain("true")).with("DISABLE_SNAPSHOT", plain("false"));
      changed = true;
    }
    if (key == kLists[0]) {
      items.insert(items.end(), recorders_.begin(), recorders_.end());
      if (process.stop.has_value())
        items.push_back(map({{"NAME", text(kSignalAt)},
                             {"MODE", text(gantry::mode_name(process.stop->mode))},
                             {"ITERATION", plain(std::to_string(process.stop->number))},
                             {"SIGNAL", text(arguments_.signal)}}));
      changed = true;
    }
    if (!changed) continue;
    solver.emplace_back(key, Config::list(std::move(items), kHere));
    replaced.push_back(gantry::cat("SOLVER.", key));
  }
  std::erase_if(overrides, [&](const std::string& text) {
    return std::any_of(replaced.begin(), replaced.end(),
                       [&](const std::string& key) { return overrides_key(text, key); });
  });

  // The harness alone stops it.
  std::vector<std::pair<std::string, Config>> top{{"_BASE", text(fs::absolute(arguments_.config).string())}};
  if (env_.find("MAX_RUN_TIME") != nullptr) {
    top.emplace_back("ENV", map({{"MAX_RUN_TIME", plain("0")}}));
    std::erase_if(overrides, [](const std::string& text) { return overrides_key(text, "ENV.MAX_RUN_TIME"); });
  }
  top.emplace_back("SOLVER", map(solver));
  std::ofstream file(process.config, std::ios::binary);
  file << map(top).yaml();
  if (!file.flush()) throw gantry::Error("cannot write " + process.config);

  std::vector<std::string> words = program_;
  words.insert(words.end(), {"run", process.config});
  words.insert(words.end(), overrides.begin(), overrides.end());
  return words;
}

}  // namespace stop_and_go
