#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/resume.h"

// When checkpoints are saved, which are kept, and which are not taken.

namespace {

namespace fs = std::filesystem;
using e2e::at_iteration;
using e2e::Job;
using e2e::RunResult;
using Names = std::vector<std::string>;

const std::string kTwoEpochs = "SOLVER.MAX_EPOCHS=2";
const std::string kHook = "SOLVER.HOOKS[CheckpointHook].";
const std::string kNoBest = kHook + "SAVE_BEST=false";
const std::string kNoLast = kHook + "SAVE_LAST=false";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A change of one byte in the middle of a file.
void damage(const Job& job, const std::string& file) {
  std::string bytes = job.dir.read(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  job.dir.write(file, bytes);
}

/// Every file below WORK_DIR with what is in it, but for what each start writes.
std::vector<std::pair<std::string, std::string>> contents(const Job& job) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& name : job.dir.list()) {
    const std::string inside = name.starts_with("work/") ? name.substr(5) : "";
    if (inside.empty() || inside == "log.txt" || inside == "config.yaml" || inside.starts_with(".gantry")) continue;
    all.emplace_back(name, name.ends_with('/') ? "" : job.dir.read(name));
  }
  return all;
}

/// Two epochs, and a configuration that resumes from `path`, on line 3.
struct Trained : Job {
  explicit Trained(const std::vector<std::string>& changes = {kTwoEpochs}) { run(changes); }
  RunResult resume_from(const std::string& path, std::vector<std::string> changes, int expected_exit) const {
    dir.write("from.yaml", "_BASE: job.yaml\nSOLVER:\n  RESUME_FROM: " + path + "\n");
    std::vector<std::string> arguments = command(changes);
    arguments[1] = "from.yaml";
    const RunResult result = e2e::run_gantry(arguments, dir.path());
    INFO(result.describe());
    REQUIRE(result.exit_code == expected_exit);
    return result;
  }
  /// That it is refused with the place in the configuration, and that nothing is changed.
  std::string refused(const std::string& path,
                      const std::vector<std::string>& changes = {"SOLVER.MAX_EPOCHS=3"}) const {
    const auto before = contents(*this);
    const RunResult result = resume_from(path, changes, 2);
    INFO(result.describe());
    CHECK(contains(result.err, "from.yaml:3"));
    CHECK(e2e::json_value(result.last_line(), {"error", "line"}) == "3");
    CHECK(contents(*this) == before);
    return result.err;
  }
};

}  // namespace

TEST_CASE("a damaged or missing checkpoint that is named by path is refused and nothing is lost") {
  const Trained job;
  const std::string path = "work/checkpoints/ldm_step-10";
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.safetensors", "checkpoint.json"}) {
    INFO(file);
    const std::string name = path + "/" + file;
    const std::string whole = job.dir.read(name);
    damage(job, name);
    CHECK(contains(job.refused(path), file));
    fs::remove(job.dir.path(name));
    CHECK(contains(job.refused(path), file));
    job.dir.write(name, whole.substr(0, whole.size() - 1));
    CHECK(contains(job.refused(path), file));
    job.dir.write(name, whole);
  }
  CHECK(contains(job.refused("work/checkpoints/ldm_step-15"), "there is no checkpoint"));
  // Whole again, it is taken.
  job.resume_from(path, {"SOLVER.MAX_EPOCHS=3"}, 0);
}

TEST_CASE("a checkpoint of another model or optimizer is refused with all that differs") {
  const Trained job;
  // The older one: nothing newer may be moved away for one that is then refused.
  const std::string path = "work/checkpoints/ldm_step-10";
  const std::string configuration = job.dir.read("work/config.yaml");
  const std::string model = job.refused(path, {"--allow-config-change", "SOLVER.MODEL.BACKBONE.CHANNELS=5"});
  for (const char* part : {"model/backbone.conv.weight", "model/backbone.conv.bias", "model/backbone.norm.weight",
                           "model/backbone.norm.running_var", "model/head.weight", "[4, 1, 3, 3]", "[5, 1, 3, 3]",
                           "[3, 64]", "[3, 80]", "optimizer/head.weight/momentum_buffer"}) {
    INFO(part);
    CHECK(contains(model, part));
  }
  CHECK_FALSE(contains(model, "head.bias"));  // fits
  const std::string optimizer =
      job.refused(path, {"--allow-config-change", "SOLVER.OPTIMIZER={NAME: AdamW, LEARNING_RATE: 0.01}"});
  CHECK(contains(optimizer, "optimizer/head.weight/momentum_buffer"));
  CHECK(job.dir.read("work/config.yaml") == configuration);  // still the one that gave the results
}

TEST_CASE("auto passes over damaged checkpoints and says why") {
  Job undisturbed;
  undisturbed.run({"SOLVER.MAX_EPOCHS=3"});
  const Trained job({"SOLVER.MAX_EPOCHS=3"});
  damage(job, "work/checkpoints/ldm_step-30/optimizer.safetensors");
  damage(job, "work/checkpoints/ldm_step-20/checkpoint.json");
  const RunResult result = job.resume({"SOLVER.MAX_EPOCHS=3"});
  INFO(result.describe());
  CHECK(contains(result.err, "optimizer.safetensors is damaged"));
  CHECK(contains(result.err, "ldm_step-20: its checkpoint.json"));
  CHECK(contains(result.err, "goes on from " + job.checkpoint(10)));
  e2e::check_same_training(undisturbed, job);
  CHECK(job.names() == Names{"best", "last", "ldm_step-10", "ldm_step-20", "ldm_step-30"});
}

TEST_CASE("auto refuses to start afresh over nothing but damaged checkpoints") {
  const Trained job;
  damage(job, "work/checkpoints/ldm_step-10/model.safetensors");
  damage(job, "work/checkpoints/ldm_step-20/checkpoint.json");
  const auto before = contents(job);
  const std::string error = job.resume({kTwoEpochs}, 2).err;
  CHECK(contains(error, "none of the checkpoints"));
  CHECK(contains(error, "model.safetensors"));
  CHECK(contains(error, "ldm_step-20"));
  CHECK(contents(job) == before);
}

TEST_CASE("auto starts afresh where there is no checkpoint") {
  Job undisturbed, job;
  undisturbed.run({kTwoEpochs});
  job.resume({kTwoEpochs});
  e2e::check_same_training(undisturbed, job);
}

TEST_CASE("checkpoints are saved at their interval") {
  struct Case {
    const char* interval;
    Names names;
  };
  // Windows end after 3 6 9 10 13 16 19 20 iterations: a save waits for the end of the window.
  const std::vector<Case> cases = {
      {"2", {"last", "ldm_step-20"}},
      {"7 iters", {"last", "ldm_step-16", "ldm_step-9"}},
      {"3 steps", {"last", "ldm_step-16", "ldm_step-9"}},
      {"0.000001 s",
       {"last", "ldm_step-10", "ldm_step-13", "ldm_step-16", "ldm_step-19", "ldm_step-20", "ldm_step-3", "ldm_step-6",
        "ldm_step-9"}},
      {"1 h", {}},
      {"-1", {}},
  };
  for (const Case& c : cases) {
    INFO(c.interval);
    Job job;
    job.run({kTwoEpochs, kNoBest, kNoLast, kHook + "INTERVAL=" + c.interval});
    CHECK(job.names() == c.names);
  }
}

TEST_CASE("the last iteration is saved with SAVE_LAST and a pause is always saved") {
  Job with, without, paused;
  with.run({"SOLVER.MAX_EPOCHS=3", kNoBest, kHook + "INTERVAL=2"});
  CHECK(with.names() == Names{"last", "ldm_step-20", "ldm_step-30"});
  CHECK(with.link("last") == "ldm_step-30");
  without.run({"SOLVER.MAX_EPOCHS=3", kNoBest, kNoLast, kHook + "INTERVAL=2"});
  CHECK(without.names() == Names{"last", "ldm_step-20"});
  paused.run({kNoBest, kNoLast, kHook + "INTERVAL=-1", at_iteration(4)}, 75);
  CHECK(paused.names() == Names{"last", "ldm_step-6"});
}

TEST_CASE("checkpoints are named by SAVE_NAME_PREFIX and the report names the last and the best value") {
  Job job;
  const RunResult result = job.run({kTwoEpochs, kHook + "SAVE_NAME_PREFIX=epoch"});
  CHECK(job.names() == Names{"best", "epoch-10", "epoch-20", "last"});
  CHECK(e2e::json_value(result.last_line(), {"checkpoint"}) == job.work("checkpoints/epoch-20"));
  const double best = e2e::json_number(result.last_line(), {"best", "loss"});
  CHECK(std::isfinite(best));
  CHECK(contains(job.dir.read("work/checkpoints/best/checkpoint.json"),
                 "\"eval/loss\": " + *e2e::json_value(result.last_line(), {"best", "loss"})));
}

TEST_CASE("a dry run with CheckpointHook leaves nothing behind") {
  const e2e::TempDir temporary;
  Job job;
  std::vector<std::string> arguments =
      job.command({"SOLVER.HOOKS[test/LossTrace].FILE=/dev/null", "SOLVER.HOOKS[test/Trace].FILE=/dev/null"});
  for (const char* hook : {"[2]", "[3]"})  // the two that count
    arguments.push_back(std::string("SOLVER.HOOKS") + hook + ".FILE=/dev/null");
  arguments.push_back("--dry-run");
  const RunResult result = e2e::run_gantry(arguments, job.dir.path(), {.env = {{"TMPDIR", temporary.path()}}});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(contains(result.err, "saved checkpoints/ldm_step-2"));
  CHECK(job.dir.list() == Names{"job.yaml"});
  CHECK(temporary.list().empty());
}

TEST_CASE("CheckpointHook stands once and not where only evaluations are") {
  Job job;
  const std::string twice = job.run({"SOLVER.TRAIN_HOOKS=[{NAME: BackwardHook}, {NAME: CheckpointHook}]"}, 2).err;
  CHECK(contains(twice, "CheckpointHook"));
  const std::string misplaced =
      Job(e2e::replaced(e2e::kJob, "    - {NAME: CheckpointHook, SAVE_LAST: true, SAVE_BEST_BY: -loss}\n", ""))
          .run({"SOLVER.EVAL_HOOKS=[{NAME: CheckpointHook}]"}, 2)
          .err;
  CHECK(contains(misplaced, "HOOKS or TRAIN_HOOKS"));
  CHECK(job.dir.list() == Names{"job.yaml"});
}
