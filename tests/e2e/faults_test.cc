#include "e2e/faults.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

// Saves that fail, and processes that end within one: what was saved before is never lost.

namespace {

using e2e::Call;
using e2e::FaultyRun;
using e2e::Job;
using e2e::RunResult;
using Names = std::vector<std::string>;

const std::string kHook = "SOLVER.HOOKS[CheckpointHook].";
/// Two epochs of three iterations, each followed by an evaluation and a save; the first checkpoint goes when the second
/// is there.
const std::vector<std::string> kSmall = {"SOLVER.MAX_EPOCHS=2",
                                         "SOLVER.LIMIT_TRAIN_BATCHES=3",
                                         "SOLVER.LIMIT_EVAL_BATCHES=1",
                                         "SOLVER.TRAIN_DATA.NUM_WORKERS=0",
                                         "SOLVER.EVAL_DATA.NUM_WORKERS=0",
                                         kHook + "SAVE_BEST=false",
                                         kHook + "KEEP_LAST=1"};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Without the number of the process, which temporary names end with.
std::string lasting_name(const std::string& path) {
  std::string name = file_name(path);
  if (name.starts_with(".tmp-")) name.erase(name.rfind('-'));
  return name;
}

/// Of what a temporary name stands for.
std::string meant_name(const std::string& path) {
  const std::string name = lasting_name(path);
  return name.starts_with(".tmp-") ? name.substr(5) : name;
}

std::string described(const Call& call) {
  return call.name + " " + call.path + (call.to.empty() ? "" : " -> ") + call.to;
}

/// An undisturbed run and where in its calls a checkpoint was saved.
struct Save {
  Job job;
  std::vector<Call> calls;
  std::size_t begin = 0, published = 0, end = 0;

  explicit Save(const std::string& checkpoint) {
    const FaultyRun run(job, "", kSmall);
    INFO(run.result.describe());
    REQUIRE(run.result.exit_code == 0);
    calls = run.checkpoint_calls();
    const auto is = [&](const Call& call) { return call.is("mkdir", ".tmp-" + checkpoint + "-"); };
    begin = static_cast<std::size_t>(std::find_if(calls.begin(), calls.end(), is) - calls.begin());
    const auto publishes = [&](const Call& call) {
      return call.name == "rename" && call.to.ends_with("/work/checkpoints/" + checkpoint);
    };
    published = static_cast<std::size_t>(std::find_if(calls.begin(), calls.end(), publishes) - calls.begin());
    REQUIRE(begin < published);
    REQUIRE(published < calls.size());
    const auto next = std::find_if(calls.begin() + static_cast<std::ptrdiff_t>(published), calls.end(),
                                   [](const Call& call) { return call.name == "mkdir"; });
    end = static_cast<std::size_t>(next - calls.begin());
  }

  /// All calls from the first on; of many writes to a file one after the other the first, and with `inner_writes` one
  /// in the middle and the last.
  std::vector<std::size_t> worth_trying(bool inner_writes) const {
    std::vector<std::size_t> chosen;
    for (std::size_t i = begin; i < end;) {
      std::size_t same = i + 1;
      while (calls[i].name == "write" && same < end && calls[same].name == "write" && calls[same].path == calls[i].path)
        ++same;
      std::set<std::size_t> some = {i};
      if (inner_writes) some.insert({(i + same) / 2, same - 1});
      chosen.insert(chosen.end(), some.begin(), some.end());
      i = same;
    }
    return chosen;
  }
};

std::string rule_for(std::size_t call, const std::string& times_and_action) {
  return "any work/checkpoints " + std::to_string(call + 1) + " " + times_and_action;
}

/// A run goes on from one of `from` (empty: it starts afresh) and ends as the undisturbed one, with nothing left over.
void check_goes_on(const Job& job, const Job& undisturbed, const Names& from) {
  const RunResult resumed = job.resume(kSmall);
  INFO(resumed.describe());
  bool as_expected = false;
  for (const std::string& name : from) {
    as_expected =
        as_expected || (name.empty() ? !contains(resumed.err, "goes on from")
                                     : contains(resumed.err, "goes on from " + job.work("checkpoints/" + name)));
  }
  CHECK(as_expected);
  e2e::check_same_training(undisturbed, job);
  e2e::check_same_counts(undisturbed, job);
  CHECK(job.names() == undisturbed.names());
}

/// Kills a run before each call of the save of `checkpoint`.
void kill_at_every_call(const std::string& checkpoint, const std::string& previous, bool inner_writes) {
  const Save save(checkpoint);
  CHECK(save.job.names() == Names{"last", "ldm_step-6"});
  const std::vector<std::size_t> chosen = save.worth_trying(inner_writes);
  REQUIRE(chosen.size() > 20);
  for (const std::size_t i : chosen) {
    INFO("killed before call " << i << ", " << described(save.calls[i]));
    const Job job;
    const FaultyRun killed(job, rule_for(i, "1 kill"), kSmall);
    INFO(killed.result.describe());
    REQUIRE(killed.result.signal == SIGKILL);
    // It is the call that was meant.
    const std::vector<Call> made = killed.checkpoint_calls();
    REQUIRE(made.size() == i + 1);
    CHECK(made.back().name == save.calls[i].name);
    CHECK(lasting_name(made.back().path) == lasting_name(save.calls[i].path));
    check_goes_on(job, save.job, {i <= save.published ? previous : checkpoint});
  }
}

}  // namespace

TEST_CASE("a process killed at any call of its first save leaves nothing or a whole checkpoint") {
  kill_at_every_call("ldm_step-3", "", false);
}

TEST_CASE("a process killed at any call of a save leaves the checkpoint before or the new one and goes on from it") {
  kill_at_every_call("ldm_step-6", "ldm_step-3", true);
}

TEST_CASE("a checkpoint is on the disk before it has its name and the one before goes only then") {
  const Save save("ldm_step-6");
  const auto first = [&](auto&& matches) {
    const auto found = std::find_if(save.calls.begin() + static_cast<std::ptrdiff_t>(save.begin), save.calls.end(),
                                    [&](const Call& call) { return matches(call); });
    REQUIRE(found != save.calls.end());
    return static_cast<std::size_t>(found - save.calls.begin());
  };
  const std::string staged = save.calls[save.begin].path;
  CHECK(save.calls[save.published].path == staged);
  const std::size_t folder_flushed = first([&](const Call& c) { return c.name == "fsync" && c.path == staged; });
  CHECK(folder_flushed < save.published);
  std::size_t account_begun = 0;
  for (const std::string name :
       {"model.safetensors", "optimizer.safetensors", "state.safetensors", "checkpoint.json"}) {
    INFO(name);
    const std::string path = staged + "/" + name;
    const std::size_t opened = first([&](const Call& c) { return c.name == "open" && c.path == path; });
    const std::size_t flushed = first([&](const Call& c) { return c.name == "fsync" && c.path == path; });
    std::size_t last_write = 0;
    for (std::size_t i = opened; i < save.calls.size(); ++i)
      if (save.calls[i].is("write", path)) last_write = i;
    CHECK(opened < last_write);
    CHECK(last_write < flushed);
    CHECK(flushed < folder_flushed);
    CHECK(opened >= account_begun);  // the account is the last one
    account_begun = opened;
  }
  // The name itself is certain before anything builds on it, and before the earlier checkpoint loses its own.
  const std::size_t certain = save.published + 1;
  CHECK(save.calls[certain].name == "fsync");
  CHECK(save.calls[certain].path == save.job.dir.path("work/checkpoints"));
  const std::size_t goes = first(
      [](const Call& c) { return (c.name == "rename" || c.name == "remove") && c.path.ends_with("/ldm_step-3"); });
  CHECK(certain < goes);
  for (std::size_t i = 0; i < goes; ++i) {
    INFO(described(save.calls[i]));
    CHECK_FALSE(save.calls[i].is("remove", "checkpoints/ldm_step-3"));
  }
}

TEST_CASE("a save in which any one call fails with EIO says what failed and the run goes on once it does not") {
  const Save save("ldm_step-6");
  std::set<std::string> named;
  for (const std::size_t i : save.worth_trying(false)) {
    const Call& call = save.calls[i];
    INFO("EIO from call " << i << ", " << described(call));
    const Job job;
    const FaultyRun failed(job, rule_for(i, "1 EIO"), kSmall);
    INFO(failed.result.describe());
    // What is of no use to anyone may be removed later as well.
    if (call.name != "remove" || failed.result.exit_code != 0) {
      REQUIRE(failed.result.exit_code == 1);
      CHECK(contains(failed.result.err, "Input/output error"));
      const std::string folder = call.path.substr(0, call.path.rfind('/'));
      const bool names_it = contains(failed.result.err, meant_name(call.path)) ||
                            (call.name == "remove" && contains(failed.result.err, meant_name(folder)));
      CHECK(names_it);
      CHECK(e2e::json_value(failed.result.last_line(), {"status"}) == "failed");
      named.insert(lasting_name(call.path));
    }
    for (const std::string& name : job.names())
      if (i <= save.published) CHECK_FALSE(name.starts_with(".tmp-ldm_step"));
    check_goes_on(job, save.job, {i <= save.published ? "ldm_step-3" : "ldm_step-6"});
  }
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.safetensors", "checkpoint.json"})
    CHECK(named.contains(file));
}

TEST_CASE("a full disk within a save names the file and the checkpoint before is whole") {
  const Save save("ldm_step-6");
  for (const std::string name :
       {"model.safetensors", "optimizer.safetensors", "state.safetensors", "checkpoint.json"}) {
    INFO(name);
    const Job job;
    std::size_t writes_before = 0;  // of the first save
    for (std::size_t i = 0; i < save.begin; ++i) writes_before += save.calls[i].is("write", name);
    const FaultyRun failed(job, "write " + name + " " + std::to_string(writes_before + 1) + " * ENOSPC", kSmall);
    INFO(failed.result.describe());
    CHECK(failed.result.exit_code == 1);
    CHECK(contains(failed.result.err, "cannot save the checkpoint ldm_step-6: cannot write "));
    CHECK(contains(failed.result.err, name + ": No space left on device ("));
    CHECK(job.names() == Names{"last", "ldm_step-3"});
    const RunResult inspected = e2e::run_gantry({"inspect", job.checkpoint(3)}, job.dir.path());
    INFO(inspected.describe());
    CHECK(inspected.exit_code == 0);
    check_goes_on(job, save.job, {"ldm_step-3"});
  }
}

TEST_CASE("writes that take a part of their bytes give whole checkpoints") {
  Job undisturbed, job;
  undisturbed.run(kSmall);
  const FaultyRun run(job, "write work/checkpoints 1 * half", kSmall);
  INFO(run.result.describe());
  CHECK(run.result.exit_code == 0);
  e2e::check_same_training(undisturbed, job);
}

TEST_CASE("a work dir that is read only from the start is a configuration error that names it") {
  const Job job;
  const FaultyRun run(job, "change /work 1 * EROFS", kSmall);
  INFO(run.result.describe());
  CHECK(run.result.exit_code == 2);
  CHECK(contains(run.result.err, "job.yaml:5"));
  CHECK(contains(run.result.err, job.dir.path("work")));
  CHECK(contains(run.result.err, "Read-only file system"));
  CHECK(job.dir.read("losses.txt") == "");
}

TEST_CASE("a work dir that an earlier run left and that is read only now is a configuration error that names it") {
  const Job job;
  std::vector<std::string> stop = kSmall;
  stop.push_back(e2e::at_iteration(1));
  job.run(stop, 75);
  const Names before = job.names();
  const std::string losses = job.dir.read("losses.txt");
  for (const char* resume : {"SOLVER.RESUME_FROM=auto", "SOLVER.RESUME_FROM=null"}) {
    std::vector<std::string> changes = kSmall;
    changes.push_back(resume);
    const FaultyRun run(job, "change /work 1 * EROFS", changes);
    INFO(run.result.describe());
    CHECK(run.result.exit_code == 2);
    CHECK(contains(run.result.err, job.dir.path("work")));
    CHECK(contains(run.result.err, "Read-only file system"));
    CHECK(job.names() == before);
    CHECK(job.dir.read("losses.txt") == losses);
  }
}

TEST_CASE("a work dir that becomes read only before a save ends the run and costs what came after the last save") {
  Job undisturbed;
  undisturbed.run(kSmall);
  // From the first save on, and from the second.
  for (const auto& [checkpoint, from] : {std::pair{"ldm_step-3", ""}, std::pair{"ldm_step-6", "ldm_step-3"}}) {
    INFO(std::string(checkpoint));
    const Save save(checkpoint);
    std::size_t changes_before = 0;
    for (std::size_t i = 0; i < save.begin; ++i) {
      const std::string& name = save.calls[i].name;
      changes_before += name != "write" && name != "fsync" && name != "close";
    }
    const Job job;
    const FaultyRun failed(job, "change work/checkpoints " + std::to_string(changes_before + 1) + " * EROFS", kSmall);
    INFO(failed.result.describe());
    CHECK(failed.result.exit_code == 1);
    CHECK(contains(failed.result.err, std::string("cannot save the checkpoint ") + checkpoint));
    CHECK(contains(failed.result.err, "Read-only file system"));
    CHECK(contains(failed.result.err, job.dir.path("work/checkpoints")));
    check_goes_on(job, undisturbed, {from});
  }
}

TEST_CASE(
    "a file of the newest checkpoint that is gone or changed by a bit makes auto take the one before and say why") {
  const std::vector<std::string> both(kSmall.begin(), kSmall.end() - 1);  // both are kept
  Job undisturbed;
  undisturbed.run(both);
  for (const std::string name :
       {"model.safetensors", "optimizer.safetensors", "state.safetensors", "checkpoint.json"}) {
    for (const bool gone : {true, false}) {
      INFO(name << (gone ? " gone" : " changed"));
      const Job job;
      job.run(both);
      const std::string file = "work/checkpoints/ldm_step-6/" + name;
      if (gone) {
        std::filesystem::remove(job.dir.path(file));
      } else {
        std::string bytes = job.dir.read(file);
        bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 0x10);
        job.dir.write(file, bytes);
      }
      const RunResult resumed = job.resume(both);
      INFO(resumed.describe());
      CHECK(contains(resumed.err, "ldm_step-6: "));
      CHECK(contains(resumed.err, name));
      CHECK(contains(resumed.err, "goes on from " + job.checkpoint(3)));
      e2e::check_same_training(undisturbed, job);
      CHECK(job.names() == undisturbed.names());
    }
  }
}
