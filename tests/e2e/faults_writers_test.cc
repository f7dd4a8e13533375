#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "e2e/faults.h"
#include "e2e/recorders.h"

// A full disk where hooks write beside the checkpoints.

namespace {

namespace fs = std::filesystem;
using e2e::Call;
using e2e::contains;
using e2e::FaultyRun;
using e2e::Job;

/// Every file below a folder or the one file, with its bytes.
std::vector<std::pair<std::string, std::string>> contents(const Job& job, const std::string& place) {
  std::vector<std::pair<std::string, std::string>> all;
  if (fs::is_regular_file(job.dir.path(place))) return {{place, job.dir.read(place)}};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(job.dir.path(place))) {
    const std::string name = entry.path().lexically_relative(job.dir.path()).string();
    if (entry.is_regular_file()) all.emplace_back(name, job.dir.read(name));
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// The disk is full from the second write to `place` on, after the checkpoint of iteration 10; the first of those that
/// fail has written a half.
std::string full_disk(const FaultyRun& undisturbed, const std::string& place) {
  int64_t writes = 0;
  for (const Call& call : undisturbed.calls) {
    if (call.name == "rename" && call.to.ends_with("/ldm_step-10")) break;
    writes += call.is("write", place);
  }
  const std::string rule = "write " + place + " ";
  return rule + std::to_string(writes + 2) + " 1 half; " + rule + std::to_string(writes + 3) + " * ENOSPC";
}

/// `place` is what the hook writes to, `named` the file that it cannot write.
void check_full_disk(const std::string& hook, const std::string& place, const std::string& named) {
  const std::string config = e2e::recorded_job("    - " + hook + "\n");
  const Job undisturbed(config), job(config);
  const FaultyRun whole(undisturbed, "", {});
  INFO(whole.result.describe());
  REQUIRE(whole.result.exit_code == 0);
  const FaultyRun failed(job, full_disk(whole, place), {});
  INFO(failed.result.describe());
  CHECK(failed.result.exit_code == 1);
  CHECK(contains(failed.result.err, "No space left on device"));
  CHECK(contains(failed.result.err, named));
  CHECK(contains(failed.result.err, "job.yaml:"));  // which hook it was
  // Nothing of the checkpoints is lost.
  REQUIRE(job.link("last") == "ldm_step-10");
  CHECK(e2e::checkpoint_difference(undisturbed.checkpoint(10), job.checkpoint(10)) == "");
  CHECK(e2e::run_gantry({"inspect", job.checkpoint(10)}, job.dir.path()).exit_code == 0);

  const e2e::RunResult resumed = job.resume();
  CHECK(contains(resumed.err, "goes on from " + job.checkpoint(10)));
  e2e::check_same_training(undisturbed, job);
  e2e::check_same_counts(undisturbed, job);
  if (contains(hook, "Tensorboard")) {
    if (e2e::have_python()) CHECK(e2e::shown(job) == e2e::shown(undisturbed));
  } else {
    REQUIRE(contents(undisturbed, place).size() > 0);
    CHECK(contents(job, place) == contents(undisturbed, place));
  }
}

}  // namespace

TEST_CASE("a full disk under an event file names it and costs neither a checkpoint nor an event") {
  check_full_disk("{NAME: TensorboardLogHook, LOG_INTERVAL: 4}", "work/tensorboard", "tfevents");
}

TEST_CASE("a full disk under metrics.jsonl names it and costs neither a checkpoint nor a line") {
  check_full_disk("{NAME: JsonLogHook, LOG_INTERVAL: 4}", "work/metrics.jsonl", "metrics.jsonl");
}

TEST_CASE("a full disk under the pages of probes names them and costs neither a checkpoint nor a page") {
  check_full_disk("{NAME: ProbeDataHook, PROB_INTERVAL: 4}", "work/train_probe", "step-12");
}

TEST_CASE("a full disk under exported weights names them and costs neither a checkpoint nor an export") {
  check_full_disk("{NAME: SafetensorsHook, INTERVAL: 5}", "work/safetensors", "ldm_step-15.safetensors");
}

TEST_CASE("a full disk under predictions names them and costs neither a checkpoint nor a prediction") {
  check_full_disk("{NAME: PredictionHook, KEYS: [logits], MODES: [eval]}", "work/predictions", "eval-2");
}

TEST_CASE("a full disk under the validation losses names them and costs neither a checkpoint nor a loss") {
  check_full_disk(
      "{NAME: ValLossHook, VAL_INTERVAL: 4, DATA: {NAME: Synthetic, SIZE: 21, SHAPE: [1, 8, 8], NUM_CLASSES: 3, "
      "BATCH_SIZE: 8}}",
      "work/val_loss", "val_loss");
}
