#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>

#include "checkpoint_json.h"
#include "gantry/checkpoint.h"
#include "gantry/version.h"
#include "unit/checkpoint_samples.h"
#include "unit/files.h"
#include "unit/messages.h"
#include "xxh3.h"

using gantry::CheckpointInfo;
using gantry::CheckpointStore;
using gantry::State;
namespace fs = std::filesystem;

namespace {

std::string info_message(const CheckpointInfo& info) {
  return message_of([&] { gantry::read_checkpoint_info(info.path); });
}

std::string verify_message(const CheckpointInfo& info) {
  return message_of([&] { gantry::verify_checkpoint(gantry::read_checkpoint_info(info.path)); });
}

/// The account with a text in place of another, and a hash that fits.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  text.replace(place, from.size(), to);
  text.resize(text.rfind("  \"xxh3\""));
  gantry::Xxh3 hash;
  hash.update(text.data(), text.size());
  return text + "  \"xxh3\": \"" + hash.hex() + "\"\n}\n";
}

std::string parse_message(const std::string& text) {
  return message_of([&] { gantry::parse_checkpoint_json(text); });
}

}  // namespace

TEST_CASE("any byte of checkpoint.json that changes is noticed") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  const std::string whole = bytes_of(info.path + "/checkpoint.json");
  REQUIRE(info_message(info) == "nothing was thrown");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {1, 0x20, 0x80}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      put_bytes(info.path + "/checkpoint.json", bytes);
      CAPTURE(i);
      CHECK(info_message(info).starts_with(info.path + ": its checkpoint.json "));
    }
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put_bytes(info.path + "/checkpoint.json", whole.substr(0, size));
    CHECK(info_message(info).starts_with(info.path + ": its checkpoint.json "));
  }
  put_bytes(info.path + "/checkpoint.json", whole + "\n");
  CHECK(contains(info_message(info), "does not end with its XXH3"));
}

TEST_CASE("an edited checkpoint.json is refused with both hashes") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  std::string text = bytes_of(info.path + "/checkpoint.json");
  const std::string said = text.substr(text.rfind("\": \"") + 4, 16);
  text.replace(text.find("\"step\": 157"), 11, "\"step\": 158");
  gantry::Xxh3 hash;
  const std::size_t end = text.rfind("  \"xxh3\"");
  hash.update(text.data(), end);
  put_bytes(info.path + "/checkpoint.json", text);
  CHECK(info_message(info) == info.path + ": its checkpoint.json is damaged or was edited: it says that its XXH3 is '" +
                                  said + "', but it is '" + hash.hex() + "'");
}

TEST_CASE("one flipped byte in any data file is found") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  REQUIRE(verify_message(info) == "nothing was thrown");
  for (const CheckpointInfo::File& file : info.files) {
    const std::string path = info.path + "/" + file.name;
    const std::string whole = bytes_of(path);
    for (const std::size_t place : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
      std::string bytes = whole;
      bytes[place] = static_cast<char>(bytes[place] ^ 1);
      put_bytes(path, bytes);
      const std::string message = verify_message(info);
      CAPTURE(message);
      CHECK(contains(message, file.name + " is damaged: its XXH3 is "));
      CHECK(contains(message, ", not " + file.xxh3));
    }
    put_bytes(path, whole);
  }
}

TEST_CASE("every missing and damaged file of a checkpoint is listed at once") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo info = store.save(sample_state(), sample_info());
  fs::remove(info.path + "/model.safetensors");
  const std::string optimizer = bytes_of(info.path + "/optimizer.safetensors");
  put_bytes(info.path + "/optimizer.safetensors", optimizer + "x");
  std::string state = bytes_of(info.path + "/state.safetensors");
  state.back() = static_cast<char>(state.back() ^ 1);
  put_bytes(info.path + "/state.safetensors", state);
  const std::string message = verify_message(info);
  CHECK(message.starts_with(info.path + ": the checkpoint cannot be used: model.safetensors is missing; "));
  CHECK(contains(message, "optimizer.safetensors has " + std::to_string(optimizer.size() + 1) + " bytes, not " +
                              std::to_string(optimizer.size()) + "; "));
  CHECK(contains(message, "state.safetensors is damaged: its XXH3 is "));
}

TEST_CASE("an account whose hash fits is still checked") {
  CheckpointInfo info = sample_info();
  info.files = {{"model.safetensors", 16, "0123456789abcdef"},
                {"optimizer.safetensors", 16, "0123456789abcdef"},
                {"state.safetensors", 16, "0123456789abcdef"}};
  const std::string text = gantry::checkpoint_json(info);
  const auto refusal = [&](const std::string& from, const std::string& to) {
    const std::string message = parse_message(edited(text, from, to));
    return message.starts_with("its checkpoint.json ") ? message.substr(20) : "without the file's name: " + message;
  };
  REQUIRE(parse_message(edited(text, "157", "158")) == "nothing was thrown");
  CHECK(refusal("\"format\": 1,", "\"format\": 2,") == "has format 2, written by Gantry " GANTRY_VERSION
                                                       "; this one, " GANTRY_VERSION
                                                       ", reads format 1: use a newer Gantry");
  CHECK(refusal("\"format\": 1,", "\"format\": 0,") == "has the format 0, which does not exist");
  CHECK(refusal("  \"epoch\": 1,\n", "") == "has no 'epoch'");
  CHECK(refusal("\"epoch\": 1,", "\"epoch\": 1.5,") == "has 'epoch' as 1.5, which must be a whole number, 0 or more");
  CHECK(contains(refusal("\"epoch\": 1,", "\"epoch\": -1,"), "'epoch' as -1"));
  CHECK(contains(refusal("\"epoch\": 1,", "\"epoch\": \"1\","), "'epoch' as the text '1'"));
  CHECK(contains(refusal("\"epoch\": 1,", "\"epoch\": 9223372036854775808,"), "too large"));
  CHECK(refusal("\"epoch\": 1,", "\"epoch\": 1,\n  \"epoch\": 1,") == "'epoch' is there twice");
  CHECK(contains(refusal("\"epoch\": 1,", "\"epoch\": [[[[1]]]],"), "nested more than 3 deep"));
  CHECK(contains(refusal("\"phase\": \"epoch_done\"", "\"phase\": {}"),
                 "has 'phase' as an object, which must be a text"));
  CHECK(contains(refusal("\"2.11.0\"", "2.11"), "has 'torch' in 'machine' as 2.11, which must be a text"));
  CHECK(contains(refusal("\"eval/loss\": 2.0", "\"eval/loss\": \"x\""), "'eval/loss' in 'metrics'"));
  CHECK(contains(refusal("\"model.safetensors\"", "\"other.safetensors\""), "does not name model.safetensors"));
  CHECK(contains(refusal("\"model.safetensors\"", "\"../model.safetensors\""), "'../model.safetensors'"));
  CHECK(contains(refusal("\"model.safetensors\"", "\"..\""), "names a file '..'"));
  CHECK(contains(refusal("\"size\": 16", "\"size\": -1"), "the size of 'model.safetensors' as -1"));
  CHECK(contains(refusal("0123456789abcdef", "0123456789ABCDEF"), "16 hexadecimal digits"));
  CHECK(contains(refusal("\"format\": 1,", "\"format\": 1"), "invalid JSON"));
}

TEST_CASE("names given twice in an account are a mistake of the caller") {
  CheckpointInfo info = sample_info();
  info.settings.push_back(info.settings[0]);
  CHECK(contains(message_of<std::logic_error>([&] { gantry::checkpoint_json(info); }), "SOLVER.MAX_EPOCHS"));
}

TEST_CASE("a save that fails leaves the earlier checkpoints and nothing of its own") {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "checkpoints");
  const CheckpointInfo earlier = store.save(sample_state(), sample_info());
  State large = sample_state();
  large.set("model/large", at::ones({100'000}, at::kFloat));

  // A limit on the size of files stands for the full disk: the write fails halfway.
  struct rlimit before;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {100'000, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  CheckpointInfo next = sample_info();
  next.iteration = 938;
  const std::string message = message_of([&] { store.save(large, next); });
  const std::string same_name = message_of([&] { store.save(large, sample_info()); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  CHECK(contains(message, "cannot save the checkpoint ldm_step-938: cannot write "));
  CHECK(contains(message, "/model.safetensors: File too large"));
  CHECK(contains(same_name, "cannot save the checkpoint ldm_step-469: "));
  CHECK(names_in(directory / "checkpoints") == std::vector<std::string>{earlier.name});
  CHECK(verify_message(earlier) == "nothing was thrown");
  gantry::verify_checkpoint(store.save(large, next));
}

TEST_CASE("a directory that cannot be made is named with the reason") {
  const TemporaryDirectory directory;
  put_bytes(directory / "file", "");
  CheckpointStore store(directory / "file/checkpoints");
  const std::string message = message_of([&] { store.save(sample_state(), sample_info()); });
  CHECK(contains(message, "cannot make the directory " + (directory / "file/checkpoints") + ": Not a directory"));
}
