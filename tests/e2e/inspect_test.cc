#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <gantry/checkpoint.h>
#include <gantry/safetensors.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "e2e/run.h"

// `gantry inspect` on files that the SDK wrote, whole and damaged.

namespace {

namespace fs = std::filesystem;

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

e2e::RunResult inspect(const e2e::TempDir& dir, std::vector<std::string> words) {
  words.insert(words.begin(), "inspect");
  return e2e::run_gantry(words, dir.path());
}

void check_valid_json(const std::string& text, const e2e::TempDir& dir) {
  const e2e::RunResult python = e2e::run_program(
      {"/usr/bin/python3", "-c", "import json, sys; json.loads(sys.argv[1], parse_constant=None)", text}, dir.path());
  INFO(text << python.describe());
  CHECK(python.exit_code == 0);
}

void write_tensors(const e2e::TempDir& dir, const std::string& name) {
  gantry::write_safetensors(dir.path(name),
                            {{"fc.weight", at::full({3, 2}, 0.5, at::kFloat)},
                             {"steps", at::full({}, 7, at::kLong)},
                             {"half", at::full({0, 4}, 1, at::kBFloat16)}},
                            {{"format", "pt"}, {"title", "a\x1b[2Jb \"c\""}});
}

/// work/checkpoints/ with ldm_step-10 and ldm_step-20, and `last` at the latter.
void write_checkpoints(const e2e::TempDir& dir) {
  gantry::CheckpointStore store(dir.path("work/checkpoints"));
  for (const int64_t iteration : {10, 20}) {
    gantry::State state;
    state.set("model/fc.weight", at::arange(6, at::kFloat).view({3, 2}));
    state.set("model/fc.bias", at::arange(3, at::kFloat));
    state.set("optimizer/fc.weight/momentum", at::full({3, 2}, 0.25, at::kFloat));
    state.set_int("counters/iteration", iteration);
    gantry::CheckpointInfo info;
    info.iteration = iteration;
    info.epoch = 2;
    info.step = iteration / 2;
    info.phase = "iterating";
    info.why = "SIGTERM";
    info.machine = {{"torch", "2.11.0"}, {"threads", "2"}};
    info.settings = {{"SOLVER.NAME", "TrainValSolver"}};
    info.metrics = {{"eval/acc@1", 0.75}, {"eval/loss", std::numeric_limits<double>::quiet_NaN()}};
    store.save(state, info);
  }
  store.link("last", "ldm_step-20");
}

void flip_byte(const e2e::TempDir& dir, const std::string& name) {
  std::string bytes = dir.read(name);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  dir.write(name, bytes);
}

}  // namespace

TEST_CASE("a safetensors file is shown as a table of its tensors with totals and metadata") {
  const e2e::TempDir dir;
  write_tensors(dir, "a.safetensors");
  const e2e::RunResult result = inspect(dir, {"a.safetensors"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(has(result.out, "  name       dtype     shape   bytes\n"));
  CHECK(has(result.out, "  fc.weight  float32   [3, 2]     24\n"));
  CHECK(has(result.out, "  steps      int64     []          8\n"));
  CHECK(has(result.out, "  half       bfloat16  [0, 4]      0\n"));
  CHECK(has(result.out,
            "total  3 tensors, 7 numbers, file of " + std::to_string(dir.read("a.safetensors").size()) + " bytes\n"));
  CHECK(has(result.out, "  format  pt\n"));
  // A terminal would obey the escape.
  CHECK(has(result.out, "  title   a?[2Jb \"c\"\n"));
}

TEST_CASE("a safetensors file as JSON") {
  const e2e::TempDir dir;
  write_tensors(dir, "a.safetensors");
  const e2e::RunResult result = inspect(dir, {"--json", "a.safetensors"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  check_valid_json(result.out, dir);
  CHECK(e2e::json_number(result.out, {"numbers"}) == 7);
  CHECK(e2e::json_number(result.out, {"bytes"}) == static_cast<double>(dir.read("a.safetensors").size()));
  CHECK(e2e::json_value(result.out, {"metadata", "title"}) == "a\x1b[2Jb \"c\"");
  CHECK(has(result.out, R"({"name": "fc.weight", "dtype": "float32", "shape": [3, 2], "bytes": 24})"));
}

TEST_CASE("a checkpoint is shown with its account and found whole through a link") {
  const e2e::TempDir dir;
  write_checkpoints(dir);
  const e2e::RunResult result = inspect(dir, {"work/checkpoints/last"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  for (const std::string& part :
       {"checkpoint  " + dir.path("work/checkpoints/ldm_step-20") + "\n", std::string("iteration   20\n"),
        std::string("epoch       2\n"), std::string("step        10\n"), std::string("phase       iterating\n"),
        std::string("why         SIGTERM\n"), std::string("  eval/acc@1  0.7500\n"), std::string("  eval/loss   nan\n"),
        std::string("  torch    2.11.0\n"), std::string("  SOLVER.NAME  TrainValSolver\n"),
        std::string("model       2 tensors, 9 numbers (parameters and buffers)")}) {
    INFO(part);
    CHECK(has(result.out, part));
  }
  std::size_t ok = 0;
  for (std::size_t at = 0; (at = result.out.find("  ok\n", at)) != std::string::npos; ++at) ++ok;
  CHECK(ok == 3);
  CHECK_FALSE(has(result.out, "DAMAGED"));
  CHECK(inspect(dir, {"work/checkpoints/ldm_step-20/"}).out == result.out);
}

TEST_CASE("a checkpoint as JSON") {
  const e2e::TempDir dir;
  write_checkpoints(dir);
  const e2e::RunResult result = inspect(dir, {"work/checkpoints/ldm_step-10", "--json"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  check_valid_json(result.out, dir);
  CHECK(e2e::json_value(result.out, {"whole"}) == "true");
  CHECK(e2e::json_number(result.out, {"iteration"}) == 10);
  CHECK(e2e::json_value(result.out, {"why"}) == "SIGTERM");
  CHECK(e2e::json_number(result.out, {"metrics", "eval/acc@1"}) == 0.75);
  CHECK(e2e::json_value(result.out, {"metrics", "eval/loss"}) == "null");
  CHECK(e2e::json_value(result.out, {"settings", "SOLVER.NAME"}) == "TrainValSolver");
  CHECK(has(result.out, R"("tensors": 2, "numbers": 9, "problem": null)"));
}

TEST_CASE("a damaged file of a checkpoint is named and the others are not blamed") {
  const e2e::TempDir dir;
  write_checkpoints(dir);
  flip_byte(dir, "work/checkpoints/ldm_step-20/model.safetensors");
  fs::remove(dir.path("work/checkpoints/ldm_step-20/optimizer.safetensors"));
  const e2e::RunResult result = inspect(dir, {"work/checkpoints/last"});
  INFO(result.describe());
  CHECK(result.exit_code == 1);
  const auto line_of = [&](const std::string& name) {
    const std::size_t at = result.out.find("  " + name);
    REQUIRE(at != std::string::npos);
    return result.out.substr(at, result.out.find('\n', at) - at);
  };
  CHECK(line_of("model.safetensors").ends_with("DAMAGED"));
  CHECK(line_of("optimizer.safetensors").ends_with("DAMAGED"));
  CHECK(line_of("state.safetensors").ends_with("ok"));
  CHECK(has(result.out, "model.safetensors is damaged: its XXH3 is "));
  CHECK(has(result.out, "optimizer.safetensors is missing"));
  CHECK_FALSE(has(result.out, "model       "));
  CHECK(inspect(dir, {"work/checkpoints/ldm_step-10"}).exit_code == 0);

  const e2e::RunResult json = inspect(dir, {"--json", "work/checkpoints/last"});
  CHECK(json.exit_code == 1);
  check_valid_json(json.out, dir);
  CHECK(e2e::json_value(json.out, {"whole"}) == "false");
}

TEST_CASE("a damaged account of a checkpoint is an answer and not an accident") {
  const e2e::TempDir dir;
  write_checkpoints(dir);
  flip_byte(dir, "work/checkpoints/ldm_step-20/checkpoint.json");
  const e2e::RunResult result = inspect(dir, {"work/checkpoints/last"});
  INFO(result.describe());
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  CHECK(has(result.err, "checkpoint.json"));
}

TEST_CASE("a folder of checkpoints given for one of them names those that are there") {
  const e2e::TempDir dir;
  write_checkpoints(dir);
  dir.write("work/checkpoints/ldm_step-30/checkpoint.json", "{");
  for (const std::string path : {"work", "work/", "work/checkpoints"}) {
    const e2e::RunResult result = inspect(dir, {path});
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(
        has(result.err, "is no checkpoint: there is no checkpoint.json in it; name one of those in work/checkpoints:"));
    CHECK(has(result.err, "work/checkpoints/ldm_step-10  iteration 10, epoch 2"));
    CHECK(has(result.err, "work/checkpoints/ldm_step-20  iteration 20, epoch 2"));
    CHECK(has(result.err, "unusable: ldm_step-30"));
  }
  const e2e::RunResult nothing = inspect(dir, {"."});
  INFO(nothing.describe());
  CHECK(nothing.exit_code == 2);
  CHECK(has(nothing.err, ". is no checkpoint: there is no checkpoint.json in it\n"));
  CHECK_FALSE(has(nothing.err, "unusable"));
  fs::create_directories(dir.path("other/checkpoints"));
  fs::rename(dir.path("work/checkpoints/ldm_step-30"), dir.path("other/checkpoints/ldm_step-30"));
  for (const std::string path : {"other", "other/checkpoints/"}) {
    const e2e::RunResult broken = inspect(dir, {path});
    INFO(broken.describe());
    CHECK(broken.exit_code == 2);
    CHECK(has(broken.err, "unusable: ldm_step-30"));
  }
}

TEST_CASE("what cannot be inspected is refused with the path and the reason") {
  const e2e::TempDir dir;
  dir.write("text.safetensors", "not at all");
  fs::create_symlink("nowhere", dir.path("link"));
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"absent"}, "no such file or directory: absent"}, {{"link"}, "link is a link to nowhere, which does not exist"},
      {{"text.safetensors"}, "text.safetensors"},        {{}, "expected one path, got 0"},
      {{"a", "b"}, "expected one path, got 2"},          {{"--jsn", "a"}, "unknown option '--jsn'"},
  };
  for (const auto& [words, message] : refused) {
    const e2e::RunResult result = inspect(dir, words);
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(has(result.err, "error: "));
    CHECK(has(result.err, message));
  }
}
