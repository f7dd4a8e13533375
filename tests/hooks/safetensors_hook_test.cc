#include <ATen/ops/full.h>

#include <filesystem>
#include <fstream>

#include "hooks/odd_job.h"

// What SafetensorsHook leaves behind.

namespace {

using e2e::contains;
using e2e::Job;
using e2e::open_file;
using e2e::operator+;
using e2e::with_hook;
using Names = std::vector<std::string>;
namespace fs = std::filesystem;

const std::string kFolder = "work/safetensors";
const std::string kHook = "SOLVER.TRAIN_HOOKS[SafetensorsHook].";

std::string hook(const std::string& keys) { return with_hook("{NAME: SafetensorsHook, " + keys + "}"); }

/// Tensor by tensor, bit by bit.
void check_same(const std::string& exported, const std::string& model) {
  const gantry::SafetensorsFile a = open_file(exported), b = open_file(model);
  REQUIRE(b.entries().size() > 2);
  CHECK(a.entries().size() == b.entries().size());
  for (const auto& entry : b.entries()) {
    INFO(entry.name);
    REQUIRE(a.find(entry.name) != nullptr);
    CHECK((a.tensor(entry.name).scalar_type() == b.tensor(entry.name).scalar_type()));
    CHECK(a.tensor(entry.name).equal(b.tensor(entry.name)));
  }
}

}  // namespace

TEST_CASE("SafetensorsHook writes the weights at its interval and at the end of training") {
  Job job(e2e::kOddJob);
  job.run({hook("INTERVAL: 5, SAVE_NAME_PREFIX: net"), "SOLVER.HOOKS[CheckpointHook].INTERVAL=5 iters"});
  CHECK(job.names(kFolder) == Names{"net-10.safetensors", "net-14.safetensors", "net-5.safetensors"});
  for (const std::string n : {"5", "10", "14"}) {
    const std::string file = job.work("safetensors/net-" + n + ".safetensors");
    check_same(file, job.checkpoint(std::stoi(n)) + "/model.safetensors");
    CHECK(e2e::metadata(open_file(file), "format") == "pt");
    CHECK(e2e::metadata(open_file(file), "iteration") == n);
    CHECK(e2e::metadata(open_file(file), "epoch") == (n == "5" ? "1" : "2"));
  }
}

TEST_CASE("an interval that ends within a window waits for the window") {
  Job job(e2e::kOddJob);
  // Windows of 3 in 7 iterations: they close after 3, 6, 7, 10, 13 and 14.
  job.run({hook("INTERVAL: 4"), "SOLVER.ACCU_STEP=3"});
  CHECK(job.names(kFolder) == Names{"ldm_step-10.safetensors", "ldm_step-13.safetensors", "ldm_step-14.safetensors",
                                    "ldm_step-6.safetensors"});
}

TEST_CASE("other units and an interval of zero write when they say") {
  Job none(e2e::kOddJob), epochs(e2e::kOddJob), steps(e2e::kOddJob);
  none.run({hook("INTERVAL: 0")});
  CHECK(none.names(kFolder) == Names{"ldm_step-14.safetensors"});
  epochs.run({hook("INTERVAL: 1 epochs")});
  CHECK(epochs.names(kFolder) == Names{"ldm_step-14.safetensors", "ldm_step-7.safetensors"});
  steps.run({hook("INTERVAL: 4 steps"), "SOLVER.ACCU_STEP=3"});
  CHECK(steps.names(kFolder) == Names{"ldm_step-10.safetensors", "ldm_step-14.safetensors"});
}

TEST_CASE("a tensor with two names is stored once with its alias") {
  Job job(e2e::kOddJob);
  job.run({hook("INTERVAL: 0")});
  const gantry::SafetensorsFile file = open_file(job.work("safetensors/ldm_step-14.safetensors"));
  CHECK(file.find("encoder") != nullptr);
  CHECK(file.find("decoder.weight") == nullptr);
  CHECK(e2e::metadata(file, "alias:decoder.weight") == "encoder");

  // The name that is wanted is the one that it has.
  Job other(e2e::kOddJob);
  other.run({hook("INTERVAL: 0, KEYS: ['^decoder', mean]")});
  const gantry::SafetensorsFile chosen = open_file(other.work("safetensors/ldm_step-14.safetensors"));
  CHECK(chosen.entries().size() == 2);
  CHECK(chosen.tensor("decoder.weight").equal(file.tensor("encoder")));
  CHECK(e2e::metadata(chosen, "alias:encoder") == "none");
}

TEST_CASE("DTYPE casts floating-point tensors alone and IGNORE_KEYS leaves names out") {
  Job job(e2e::kOddJob);
  job.run({hook("INTERVAL: 0, DTYPE: bfloat16, IGNORE_KEYS: [turned, empty]")});
  const gantry::SafetensorsFile file = open_file(job.work("safetensors/ldm_step-14.safetensors"));
  const gantry::SafetensorsFile model = open_file(job.checkpoint(14) + "/model.safetensors");
  CHECK(file.entries().size() == model.entries().size() - 2);
  for (const auto& entry : file.entries()) {
    const at::Tensor original = model.tensor(entry.name);
    INFO(entry.name);
    CHECK((entry.dtype == (original.is_floating_point() ? at::kBFloat16 : original.scalar_type())));
    CHECK(file.tensor(entry.name).equal(original.to(entry.dtype)));
  }
  CHECK((file.find("seen")->dtype == at::kLong));
  CHECK((file.find("flags")->dtype == at::kBool));
}

TEST_CASE("weights above SHARD_SIZE go into shards with an index that leads to each") {
  Job job(e2e::kOddJob);
  job.run({hook("INTERVAL: 0, SHARD_SIZE: 40")});
  CHECK(job.names(kFolder) == Names{"ldm_step-14"});
  const Names files = job.names(kFolder + "/ldm_step-14");
  REQUIRE(files.size() > 3);
  CHECK(files.back() == "model.safetensors.index.json");
  char count[8];
  std::snprintf(count, sizeof count, "%05zu", files.size() - 1);
  CHECK(files[0] == std::string("model-00001-of-") + count + ".safetensors");

  const std::string index = job.dir.read(kFolder + "/ldm_step-14/model.safetensors.index.json");
  const gantry::SafetensorsFile model = open_file(job.checkpoint(14) + "/model.safetensors");
  int64_t total = 0;
  for (const auto& entry : model.entries()) {
    total += entry.end - entry.begin;
    const auto shard = e2e::json_value(index, {"weight_map", entry.name});
    INFO(entry.name);
    REQUIRE(shard.has_value());
    const gantry::SafetensorsFile file = open_file(job.dir.path(kFolder + "/ldm_step-14/" + *shard));
    CHECK(file.tensor(entry.name).equal(model.tensor(entry.name)));
    if (entry.name == "encoder") CHECK(e2e::metadata(file, "alias:decoder.weight") == "encoder");
  }
  CHECK(e2e::json_number(index, {"metadata", "total_size"}) == static_cast<double>(total));

  Job whole(e2e::kOddJob);
  whole.run({hook("INTERVAL: 0, SHARD_SIZE: 1KB")});
  CHECK(whole.names(kFolder) == Names{"ldm_step-14.safetensors"});
}

TEST_CASE("a file and a folder that are there already are replaced whole") {
  Job job(e2e::kOddJob);
  const auto stop = std::vector<std::string>{"SOLVER.HOOKS[CheckpointHook].INTERVAL=3 iters",
                                             "SOLVER.HOOKS[CheckpointHook].SAVE_NAME_PREFIX=c"};
  const auto both = std::vector<std::string>{with_hook("{NAME: SafetensorsHook, INTERVAL: 6, SAVE_NAME_PREFIX: one}, "
                                                       "{NAME: SafetensorsHook, INTERVAL: 6, SAVE_NAME_PREFIX: many, "
                                                       "SHARD_SIZE: 40}")} +
                    stop;
  job.run(both);
  const std::string one = job.dir.read(kFolder + "/one-12.safetensors");
  const Names shards = job.names(kFolder + "/many-12");
  // Half written files of a killed process, and wrong ones under the right names.
  job.dir.write(kFolder + "/one-12.safetensors", "wrong");
  job.dir.write(kFolder + "/many-12/left-over.safetensors", "wrong");
  job.dir.write(kFolder + "/.tmp-one-12.safetensors-1", "half");
  job.dir.write(kFolder + "/.tmp-many-12-1/model-00001-of-00002.safetensors", "half");
  job.run(both + std::vector<std::string>{"SOLVER.RESUME_FROM=work/checkpoints/c-9"});
  CHECK(job.dir.read(kFolder + "/one-12.safetensors") == one);
  CHECK(job.names(kFolder + "/many-12") == shards);
  for (const std::string& name : job.names(kFolder)) CHECK_FALSE(name.starts_with(".tmp-"));
}

TEST_CASE("a file that is cut short leaves the earlier one as it was and nothing half written") {
  Job job;
  const std::vector<std::string> large = {// about 400 kB
                                          "SOLVER.MODEL.BACKBONE.CHANNELS=2000", "SOLVER.MAX_EPOCHS=1",
                                          hook("INTERVAL: 6"), "SOLVER.HOOKS[CheckpointHook].SAVE_LAST=false",
                                          "SOLVER.HOOKS[CheckpointHook].SAVE_BEST=false"};
  job.run(large + std::vector<std::string>{"SOLVER.HOOKS[CheckpointHook].INTERVAL=5 iters"});
  const std::string earlier = job.dir.read(kFolder + "/ldm_step-6.safetensors");
  std::vector<std::string> command = {"/bin/bash", "-c", "trap '' XFSZ; ulimit -f 100; \"$@\"", "bash", GANTRY_BINARY};
  const std::vector<std::string> changes =
      large + std::vector<std::string>{"SOLVER.HOOKS[CheckpointHook].INTERVAL=0",
                                       "SOLVER.RESUME_FROM=work/checkpoints/ldm_step-5"};
  for (const std::string& argument : job.command(changes)) command.push_back(argument);
  const e2e::RunResult result = e2e::run_program(command, job.dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "File too large"));
  CHECK(contains(result.err, ".tmp-ldm_step-6.safetensors"));
  CHECK(job.dir.read(kFolder + "/ldm_step-6.safetensors") == earlier);
  CHECK(job.names(kFolder) == Names{"ldm_step-10.safetensors", "ldm_step-6.safetensors"});
}

TEST_CASE("a run that is stopped and goes on writes the files of one that was not") {
  const std::vector<std::string> changes = {hook("INTERVAL: 4"), "SOLVER.ACCU_STEP=3"};
  Job undisturbed(e2e::kOddJob), stopped(e2e::kOddJob);
  undisturbed.run(changes);
  stopped.run(changes + std::vector{e2e::at_iteration(7)}, 75);
  // A pause is no end of training.
  CHECK(stopped.names(kFolder) == Names{"ldm_step-10.safetensors", "ldm_step-6.safetensors"});
  stopped.resume(changes);
  CHECK(stopped.names(kFolder) == undisturbed.names(kFolder));
  for (const std::string& name : undisturbed.names(kFolder))
    CHECK(stopped.dir.read(kFolder + "/" + name) == undisturbed.dir.read(kFolder + "/" + name));
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("USE_EMA writes the average and is refused where there is none") {
  Job job(e2e::kOddJob);
  job.run({with_hook("{NAME: ModelEmaHook, BETA: 0.5}, {NAME: SafetensorsHook, INTERVAL: 0, USE_EMA: true}")});
  const gantry::SafetensorsFile file = open_file(job.work("safetensors/ldm_step-14.safetensors"));
  const gantry::SafetensorsFile state = open_file(job.checkpoint(14) + "/state.safetensors");
  const gantry::SafetensorsFile model = open_file(job.checkpoint(14) + "/model.safetensors");
  CHECK(file.entries().size() == model.entries().size());
  for (const char* name : {"encoder", "bias", "mean"}) {
    CHECK(file.tensor(name).equal(state.tensor(std::string("hooks/ModelEmaHook/state/average/") + name)));
    CHECK_FALSE(file.tensor(name).equal(model.tensor(name)));
  }
  CHECK(file.tensor("seen").equal(model.tensor("seen")));

  Job without(e2e::kOddJob);
  const e2e::RunResult result = without.run({hook("INTERVAL: 0, USE_EMA: true")}, 2);
  CHECK(contains(result.err, "USE_EMA is true, and no hook has averaged weights: add ModelEmaHook"));
  CHECK(without.losses().size() == 1);  // after the first step, not after the last
}

TEST_CASE("what SafetensorsHook cannot do is said with its place before anything is trained") {
  struct Case {
    const char *keys, *part;
  };
  for (const Case& c : {Case{"SHARD_SIZE: big", "SHARD_SIZE is 'big'; write a size such as 500MB, 5GB"},
                        Case{"SHARD_SIZE: 5XB", "SHARD_SIZE is '5XB'"},
                        Case{"INTERVAL: 5 min", "INTERVAL counts iterations, steps or epochs, not time"},
                        Case{"SAVE_NAME_PREFIX: a/b", "SAVE_NAME_PREFIX begins a file's name"},
                        Case{"KEYS: [nothing]", "KEYS leaves nothing to write"},
                        Case{"IGNORE_KEYS: [.]", "IGNORE_KEYS leaves nothing to write"},
                        Case{"KEYS: ['(']", "'(' is no regular expression"}, Case{"DTYPE: int8", "DTYPE"}}) {
    Job job(e2e::kOddJob);
    INFO(c.keys);
    const e2e::RunResult result = job.run({hook(c.keys)}, 2);
    INFO(result.err);
    CHECK(contains(result.err, c.part));
    CHECK(job.names(kFolder).empty());
  }
}

TEST_CASE("Python reads every exported tensor and what Python writes is loaded here") {
  const std::string python = GANTRY_SOURCE_DIR "/.venv/bin/python";
  if (!fs::exists(python)) {
    MESSAGE("skipped: there is no " << python);
    return;
  }
  Job job(e2e::kOddJob);
  job.run(
      {with_hook("{NAME: SafetensorsHook, INTERVAL: 0}, {NAME: SafetensorsHook, INTERVAL: 0, SAVE_NAME_PREFIX: many, "
                 "SHARD_SIZE: 40}")});
  const e2e::RunResult script = e2e::run_program(
      {python, GANTRY_SOURCE_DIR "/tests/hooks/read_exported.py", "work/safetensors", "14", "from_python.safetensors"},
      job.dir.path());
  INFO(script.describe());
  REQUIRE(script.exit_code == 0);

  // The script wrote other values, with its own function for models with tied weights.
  Job loaded(e2e::kOddJob);
  const e2e::RunResult run = loaded.run(
      {"SOLVER.MODEL={NAME: test/OddTensors, PRETRAINED_MODEL: '" + job.dir.path("from_python.safetensors") + "'}",
       "SOLVER.OPTIMIZER.LEARNING_RATE=0", "SOLVER.MAX_EPOCHS=1"});
  CHECK(contains(run.err, "loaded 10 tensors from"));
  const gantry::SafetensorsFile model = open_file(loaded.checkpoint(7) + "/model.safetensors");
  const gantry::SafetensorsFile written = open_file(job.dir.path("from_python.safetensors"));
  for (const char* name : {"bias", "flags", "scalar", "empty", "fp16", "bf16", "turned"}) {
    INFO(name);
    CHECK(model.tensor(name).equal(written.tensor(name)));
  }
  CHECK(model.tensor("encoder").equal(at::full({1, 4}, 0.75, at::kDouble)));
  CHECK(model.tensor("bias").item().toDouble() == 8.5);
}
