#include "plugin_folder.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fs = std::filesystem;

namespace bad_plugins {
namespace {

std::string replaced_in(std::string text, std::string_view from, std::string_view to, std::size_t& count) {
  if (from.size() != to.size()) throw std::logic_error("a file is forged without moving anything in it");
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size(), ++count)
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::string built(const std::string& name) {
  const std::string path = std::string(GANTRY_BAD_PLUGINS) + "/" + name + ".so";
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string rebuilt(std::string bytes, std::string_view from, std::string_view to) {
  std::size_t count = 0;
  bytes = replaced_in(std::move(bytes), from, to, count);
  if (count == 0) throw std::runtime_error("nothing to forge: " + std::string(from));
  return bytes;
}

std::string with_note(std::string bytes, std::string_view from, std::string_view to) {
  using namespace std::string_view_literals;
  constexpr std::string_view owner = "GANTRY\0\0"sv;
  std::size_t count = 0;
  for (std::size_t at = 0; (at = bytes.find(owner, at)) != std::string::npos; at += owner.size()) {
    uint32_t size = 0;  // name size, text size and type stand before the owner
    std::memcpy(&size, bytes.data() + at - 8, sizeof size);
    const std::size_t begin = at + owner.size();
    bytes.replace(begin, size, replaced_in(bytes.substr(begin, size), from, to, count));
  }
  if (count == 0) throw std::runtime_error("nothing to forge in the notes: " + std::string(from));
  return bytes;
}

std::string cut(const std::string& bytes, int percent) {
  return bytes.substr(0, bytes.size() * static_cast<std::size_t>(percent) / 100);
}

std::string job(const std::string& hook) {
  return R"(SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: 1
  TRAIN_DATA: {NAME: Synthetic, SIZE: 16, BATCH_SIZE: 8, NUM_WORKERS: 0}
  MODEL: {NAME: Classifier, NUM_CLASSES: 10, BACKBONE: {NAME: Mlp, INPUT_SIZE: 784, HIDDEN: [4]}}
  OPTIMIZER: {NAME: SGD, LEARNING_RATE: 0.05}
  TRAIN_HOOKS:
    - {NAME: BackwardHook}
)" + (hook.empty() ? "" : "    - " + hook + "\n");
}

PluginFolder& PluginFolder::add(const std::string& name, const std::string& bytes) {
  dir_.write("plugins/" + name, bytes);
  fs::permissions(path(name), fs::perms::owner_all);
  return *this;
}

e2e::RunResult PluginFolder::gantry_without(const std::vector<std::string>& arguments,
                                            const e2e::RunOptions& options) const {
  e2e::RunOptions marked = options;
  marked.env["GANTRY_TEST_MARKER"] = dir_.path("loaded.txt");
  return e2e::run_gantry(arguments, dir_.path(), marked);
}

e2e::RunResult PluginFolder::gantry(std::vector<std::string> arguments, const e2e::RunOptions& options) const {
  arguments.insert(arguments.end(), {"--plugin-dir", "plugins"});
  return gantry_without(arguments, options);
}

e2e::RunResult PluginFolder::run_with(const std::string& hook, const e2e::RunOptions& options) {
  dir_.write("c.yaml", job(hook));
  return gantry({"run", "c.yaml"}, options);
}

void PluginFolder::check_refused(const std::string& name, const std::vector<std::string>& parts) {
  const e2e::RunResult result = run_with("{NAME: " + name + "}");
  INFO(result.describe());
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("c.yaml:10: ") != std::string::npos);
  CHECK(result.err.find("'" + name + "'") != std::string::npos);
  for (const std::string& part : parts) {
    INFO("missing: " << part);
    CHECK(result.err.find(part) != std::string::npos);
  }
  CHECK_FALSE(dir_.has("work"));
}

void PluginFolder::check_listed(const std::string& file, const std::vector<std::string>& parts) const {
  const e2e::RunResult result = gantry({"plugins", "list"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  // "<title>  <status>\n  file      <path>\n"
  const std::size_t end = result.out.find("\n  file      " + path(file) + "\n");
  INFO("not listed: " << path(file));
  REQUIRE(end != std::string::npos);
  const std::size_t begin = result.out.rfind('\n', end - 1);
  const std::string line = result.out.substr(begin + 1, end - begin - 1);
  for (const std::string& part : parts) {
    INFO("missing: " << part);
    CHECK(line.find(part) != std::string::npos);
  }
}

void PluginFolder::check_unneeded() {
  const e2e::RunResult result = run_with("");
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  fs::remove_all(dir_.path("work"));
}

std::vector<std::string> PluginFolder::loaded() const {
  std::vector<std::string> files;
  if (!dir_.has("loaded.txt")) return files;
  std::istringstream in(dir_.read("loaded.txt"));
  for (std::string line; std::getline(in, line);) files.push_back(line);
  return files;
}

}  // namespace bad_plugins
