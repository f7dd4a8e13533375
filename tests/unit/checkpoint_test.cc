#include "gantry/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "gantry/safetensors.h"
#include "unit/checkpoint_samples.h"
#include "unit/files.h"
#include "unit/messages.h"

using gantry::CheckpointInfo;
using gantry::CheckpointStore;
using gantry::State;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> list_names(const CheckpointStore& store) {
  std::vector<std::string> names;
  for (const CheckpointInfo& info : store.list()) names.push_back(info.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a saved state reads back whole and by part") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "work/checkpoints");
  const State state = sample_state();
  const CheckpointInfo info = store.save(state, sample_info());
  gantry::verify_checkpoint(info);
  const State read = gantry::read_checkpoint(info);
  CHECK(gantry::state_differences(read, state) == Names{});
  for (const State::Leaf& leaf : state.leaves()) {
    CAPTURE(leaf.path);
    CHECK(at::equal(read.tensor(leaf.path), leaf.value));
  }
  const auto paths = [&](const char* part) {
    Names names;
    const State some = gantry::read_checkpoint(info, part);
    for (const State::Leaf& leaf : some.leaves()) names.push_back(leaf.path);
    std::sort(names.begin(), names.end());
    return names;
  };
  CHECK(paths("model") == Names{"model/fc.bias", "model/fc.weight", "model/norm.count"});
  CHECK(paths("optimizer") == Names{"optimizer/fc.bias/exp_avg", "optimizer/fc.weight/step"});
  CHECK(paths("state") == Names{"counters/best", "counters/step", "model", "modeling/x", "optimizer/", "rng/cpu"});
  CHECK_THROWS_AS(gantry::read_checkpoint(info, "sampler"), std::logic_error);
}

TEST_CASE("the files of a checkpoint hold the names of PyTorch and nothing else lies beside them") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  CHECK(info.name == "ldm_step-469");
  CHECK(info.path == (directory / "checkpoints/ldm_step-469"));
  CHECK(names_in(info.path) ==
        Names{"checkpoint.json", "model.safetensors", "optimizer.safetensors", "state.safetensors"});
  CHECK(names_in(directory / "checkpoints") == Names{"ldm_step-469"});
  const auto model = gantry::SafetensorsFile::open(info.path + "/model.safetensors");
  CHECK(model.find("fc.weight") != nullptr);
  CHECK(model.entries().size() == 3);
  CHECK(model.metadata() == std::vector<std::pair<std::string, std::string>>{{"format", "pt"}});
  CHECK(gantry::SafetensorsFile::open(info.path + "/optimizer.safetensors").find("fc.weight/step") != nullptr);
}

TEST_CASE("equal states saved under other circumstances give equal data files") {
  const TemporaryDirectory directory;
  CheckpointStore one(directory / "1"), two(directory / "2");
  two.set_prefix("other");
  CheckpointInfo info = sample_info();
  const CheckpointInfo first = one.save(sample_state(), info);
  info.why = "a signal";
  info.machine = {{"cpu", "another"}};
  const CheckpointInfo second = two.save(sample_state(), info);
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.safetensors"}) {
    CHECK(bytes_of(first.path + "/" + name) == bytes_of(second.path + "/" + name));
  }
}

TEST_CASE("a state without optimizer leaves is saved with an empty optimizer file") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  State state;
  state.set("model/w", at::ones({2}));
  const CheckpointInfo info = store.save(state, sample_info());
  gantry::verify_checkpoint(info);
  CHECK(gantry::read_checkpoint(info, "optimizer").empty());
  CHECK(gantry::read_checkpoint(info).leaves().size() == 1);
}

TEST_CASE("a checkpoint of several megabytes verifies and reads back") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  State state;
  state.set("model/w", at::arange(1'000'003, at::kInt));
  const CheckpointInfo info = store.save(state, sample_info());
  gantry::verify_checkpoint(info);
  CHECK(at::equal(gantry::read_checkpoint(info, "model").tensor("model/w"), at::arange(1'000'003, at::kInt)));
}

TEST_CASE("everything in checkpoint.json reads back") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo saved = store.save(sample_state(), sample_info());
  const CheckpointInfo read = gantry::read_checkpoint_info(saved.path);
  CHECK(read.path == saved.path);
  CHECK(read.name == "ldm_step-469");
  CHECK(read.iteration == 469);
  CHECK(read.epoch == 1);
  CHECK(read.step == 157);
  CHECK(read.phase == "epoch_done");
  CHECK(read.why == "the end of an \"epoch\"\n2nd line");
  CHECK(read.saved == saved.saved);
  CHECK(read.saved.size() == std::string("2026-01-31T14:00:05+0100").size());
  CHECK(read.machine == sample_info().machine);
  CHECK(read.settings == sample_info().settings);
  REQUIRE(read.metrics.size() == 5);
  CHECK(read.metrics[0] == std::pair<std::string, double>("eval/acc@1", 1.0 / 3.0));
  CHECK(read.metrics[1] == std::pair<std::string, double>("eval/loss", 2.0));
  CHECK(read.metrics[2] == std::pair<std::string, double>("eval/tiny", 5e-324));
  CHECK(std::isnan(read.metrics[3].second));
  CHECK(std::isnan(read.metrics[4].second));
  REQUIRE(read.files.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(read.files[i].name == saved.files[i].name);
    CHECK(read.files[i].size == static_cast<int64_t>(fs::file_size(saved.path + "/" + read.files[i].name)));
    CHECK(read.files[i].xxh3 == saved.files[i].xxh3);
  }
}

TEST_CASE("saving over a checkpoint of the same name leaves the new one alone") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  store.save(sample_state(), sample_info());
  put_bytes(directory / "checkpoints/ldm_step-469/note.txt", "mine");
  State other;
  other.set("model/w", at::zeros({3}));
  const CheckpointInfo info = store.save(other, sample_info());
  gantry::verify_checkpoint(gantry::read_checkpoint_info(info.path));
  CHECK(gantry::read_checkpoint(info).leaves().size() == 1);
  CHECK(names_in(directory / "checkpoints") == Names{"ldm_step-469"});
  CHECK(names_in(info.path).size() == 4);
}

TEST_CASE("a renamed or copied checkpoint works under its new name") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  fs::copy(info.path, directory / "elsewhere");
  fs::rename(info.path, directory / "checkpoints/good one");
  const CheckpointInfo copied = gantry::read_checkpoint_info(directory / "elsewhere/");
  CHECK(copied.name == "elsewhere");
  CHECK(copied.path == (directory / "elsewhere"));
  gantry::verify_checkpoint(copied);
  CHECK(list_names(store) == Names{"good one"});
  gantry::verify_checkpoint(store.list()[0]);
}

TEST_CASE("checkpoints are listed by the number of their iteration whatever their prefix") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  CHECK(store.list().empty());
  const State state = sample_state();
  for (const int64_t iteration : {10000, 9900, 200}) {
    CheckpointInfo info = sample_info();
    info.iteration = iteration;
    store.save(state, info);
  }
  store.set_prefix("best");
  CheckpointInfo info = sample_info();
  info.iteration = 9900;
  store.save(state, info);
  CHECK(list_names(store) == Names{"ldm_step-200", "best-9900", "ldm_step-9900", "ldm_step-10000"});
}

TEST_CASE("directories without a valid account are reported and not listed") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  store.link("last", info.name);
  fs::create_directory(directory / "checkpoints/empty-1");
  fs::create_directory(directory / "checkpoints/.tmp-ldm_step-5-77");
  fs::create_directory(directory / "checkpoints/bad-2");
  put_bytes(directory / "checkpoints/bad-2/checkpoint.json", "{}");
  put_bytes(directory / "checkpoints/a file", "x");
  std::vector<std::string> problems;
  const std::vector<CheckpointInfo> found = store.list(&problems);
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == info.name);
  CHECK(problems == Names{"bad-2: its checkpoint.json does not end with its XXH3: it is truncated or damaged",
                          "empty-1: it has no checkpoint.json"});
}

TEST_CASE("links are relative and replaced at once and read back") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  CHECK(store.linked("last").empty());
  CheckpointInfo info = sample_info();
  const std::string first = store.save(sample_state(), info).name;
  info.iteration = 938;
  const std::string second = store.save(sample_state(), info).name;
  store.link("last", first);
  CHECK(fs::read_symlink(directory / "checkpoints/last") == first);
  store.link("last", second);
  CHECK(store.linked("last") == second);
  CHECK(names_in(directory / "checkpoints") == Names{"last", first, second});
  fs::rename(directory / "checkpoints", directory / "moved");
  const CheckpointInfo linked = gantry::read_checkpoint_info(directory / "moved/last");
  CHECK(linked.name == second);
  CHECK(linked.iteration == 938);
}

TEST_CASE("a link needs a checkpoint and a plain name and does not replace a directory") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const std::string name = store.save(sample_state(), sample_info()).name;
  CHECK(contains(message_of([&] { store.link("last", "ldm_step-1"); }), "there is no checkpoint ldm_step-1"));
  CHECK(contains(message_of([&] { store.link("../last", name); }), "'../last'"));
  CHECK(contains(message_of([&] { store.link("last", ".."); }), "'..'"));
  fs::create_directory(directory / "checkpoints/best");
  CHECK(contains(message_of([&] { store.link("best", name); }), "cannot make the link"));
  CHECK(names_in(directory / "checkpoints") == Names{"best", name});
}

TEST_CASE("links that lead nowhere are removed and others stay") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  store.remove_broken_links();
  CheckpointInfo info = sample_info();
  const std::string kept = store.save(sample_state(), info).name;
  info.iteration = 1;
  const std::string gone = store.save(sample_state(), info).name;
  store.link("last", kept);
  store.link("best", gone);
  store.remove(gone);
  CHECK(store.linked("best") == gone);
  store.remove_broken_links();
  CHECK(names_in(directory / "checkpoints") == Names{"last", kept});
}

TEST_CASE("a removed checkpoint is gone and removing it again does no harm") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const std::string name = store.save(sample_state(), sample_info()).name;
  CHECK_THROWS_AS(store.remove("../checkpoints"), gantry::Error);
  CHECK_THROWS_AS(store.remove(".."), gantry::Error);
  CHECK(list_names(store) == Names{name});
  store.remove(name);
  store.remove(name);
  CHECK(names_in(directory / "checkpoints").empty());
}

TEST_CASE("what interrupted saves left behind is removed and nothing else") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  store.remove_leftovers();
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  fs::copy(info.path, directory / "checkpoints/.tmp-ldm_step-938-77");
  fs::copy(info.path, directory / "checkpoints/.old-ldm_step-469-77");
  fs::create_directory_symlink(info.name, directory / "checkpoints/.tmp-last-77");
  put_bytes(directory / "checkpoints/.keep", "mine");
  store.remove_leftovers();
  CHECK(names_in(directory / "checkpoints") == Names{".keep", info.name});
  gantry::verify_checkpoint(info);
}

TEST_CASE("a checkpoint that had to make room when the power failed gets its name back") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  fs::rename(info.path, directory / "checkpoints/.old-ldm_step-469-77");
  store.remove_leftovers();
  CHECK(list_names(store) == Names{info.name});
  gantry::verify_checkpoint(info);
}

TEST_CASE("prefixes that would hide or move a checkpoint are refused") {
  CheckpointStore store("checkpoints");
  for (const char* prefix : {"", ".", "..", ".hidden", "a/b", "/a", "a\nb"}) {
    CHECK_THROWS_AS(store.set_prefix(prefix), gantry::Error);
  }
  CHECK(store.prefix() == "ldm_step");
  store.set_prefix("my run");
  CHECK(store.prefix() == "my run");
}

TEST_CASE("a part of a larger tensor cannot be saved yet and is named") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  State state = sample_state();
  state.set_shard("model/part", at::ones({2}), {4}, {2});
  CHECK(contains(message_of([&] { store.save(state, sample_info()); }), "'model/part' is a part of a larger tensor"));
  CHECK_FALSE(fs::exists(directory / "checkpoints"));
}

TEST_CASE("paths that are no checkpoint are told apart") {
  const TemporaryDirectory directory;
  put_bytes(directory / "file", "x");
  fs::create_directory(directory / "empty");
  fs::create_symlink("nowhere", directory / "broken");
  const auto message = [&](const std::string& name) {
    return message_of([&] { gantry::read_checkpoint_info(directory / name); }).substr((directory / name).size());
  };
  CHECK(message("nowhere") == ": there is no such checkpoint");
  CHECK(message("broken") == ": there is no such checkpoint");
  CHECK(message("file") == ": it is a file; a checkpoint is a directory");
  CHECK(message("empty") == ": it has no checkpoint.json");
}
