#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plugin_folder.h"

// Where plugins are found. test-good provides the hook test/Good and writes down which of its copies was loaded.

namespace fs = std::filesystem;

namespace {

using bad_plugins::built;
using bad_plugins::job;
using bad_plugins::PluginFolder;

const char kGood[] = "{NAME: test/Good}";

// Those of the parts that do not stand in the text, one after the other.
std::vector<std::string> missing_in(const std::string& text, const std::vector<std::string>& parts) {
  std::vector<std::string> missing;
  std::size_t at = 0;
  for (const std::string& part : parts) {
    const std::size_t found = text.find(part, at);
    if (found == std::string::npos) {
      missing.push_back(part);
    } else {
      at = found + part.size();
    }
  }
  return missing;
}

}  // namespace

TEST_CASE("GANTRY_PLUGIN_PATH names folders separated by colons") {
  PluginFolder folder;
  folder.dir().write("second/good.so", built("test-good"));
  folder.dir().write("c.yaml", job(kGood));
  e2e::RunOptions options;
  options.env["GANTRY_PLUGIN_PATH"] = folder.dir().path("first") + ":" + folder.dir().path("second");
  const e2e::RunResult result = folder.gantry_without({"run", "c.yaml"}, options);
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(folder.loaded() == std::vector<std::string>{folder.dir().path("second/good.so")});
}

TEST_CASE("PLUGIN_DIRS is relative to the file that names it") {
  PluginFolder folder;
  folder.dir().write("configs/own/good.so", built("test-good"));
  folder.dir().write("configs/c.yaml", "PLUGIN_DIRS: [own]\n" + job(kGood));
  const e2e::RunResult result = folder.gantry_without({"run", "configs/c.yaml"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(folder.loaded() == std::vector<std::string>{folder.dir().path("configs/own/good.so")});
}

TEST_CASE("a folder in PLUGIN_DIRS that is missing is an error in its line") {
  PluginFolder folder;
  folder.dir().write("c.yaml", "PLUGIN_DIRS: [gone]\n" + job(""));
  const e2e::RunResult result = folder.gantry_without({"run", "c.yaml"});
  INFO(result.describe());
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("c.yaml:1: PLUGIN_DIRS: no directory 'gone'") != std::string::npos);
}

TEST_CASE("PLUGIN pins a component to a file that no search would find") {
  PluginFolder folder;
  folder.dir().write("configs/lib/pinned.plugin", built("test-good"));
  folder.dir().write("configs/c.yaml", job("{NAME: test/Good, PLUGIN: lib/pinned.plugin}"));
  const e2e::RunResult result = folder.gantry_without({"run", "configs/c.yaml"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(folder.loaded() == std::vector<std::string>{folder.dir().path("configs/lib/pinned.plugin")});
}

TEST_CASE("PLUGIN with a file that does not fit is refused with the reason") {
  struct Case {
    std::string bytes, hook;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {bad_plugins::cut(built("test-good"), 50), "test/Good", {"incomplete file ("}},
      {"text\n", "test/Good", {"not an ELF file"}},
      {built("test-good"), "test/Other", {"it provides no such component; it provides hook test/Good"}},
      {bad_plugins::rebuilt(built("test-good"), "sdk_abi=1\n", "sdk_abi=7\n"),
       "test/Good",
       {"plugin built for 7, this host has 1"}}};
  for (const Case& bad : cases) {
    PluginFolder folder;
    folder.dir().write("pinned.so", bad.bytes);
    folder.dir().write("c.yaml", job("{NAME: " + bad.hook + ", PLUGIN: pinned.so}"));
    const e2e::RunResult result = folder.gantry_without({"run", "c.yaml"});
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    CHECK(missing_in(result.err, {"c.yaml:10: ", folder.dir().path("pinned.so")}).empty());
    CHECK(missing_in(result.err, bad.parts).empty());
    CHECK(folder.loaded().empty());
  }
}

TEST_CASE("folders are searched in the order command line then file then variable then home") {
  PluginFolder folder;
  const std::string bytes = built("test-good");
  const std::vector<std::string> files = {"arg1/z.so",    "arg2/good.so", "yaml/good.so",
                                          "var1/good.so", "var2/good.so", "home/gantry/plugins/a.so"};
  for (const std::string& file : files) folder.dir().write(file, bytes);
  folder.dir().write("c.yaml", "PLUGIN_DIRS: [yaml]\n" + job(kGood));
  e2e::RunOptions options;
  options.env["GANTRY_PLUGIN_PATH"] = folder.dir().path("var1") + ":" + folder.dir().path("var2");
  options.env["XDG_DATA_HOME"] = folder.dir().path("home");

  const e2e::RunResult result =
      folder.gantry_without({"run", "c.yaml", "--plugin-dir", "arg1", "--plugin-dir", "arg2"}, options);
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back(folder.dir().path(file));
  CHECK(missing_in(result.out, paths).empty());
  REQUIRE(folder.loaded() == std::vector<std::string>{paths.front()});

  // With one place fewer each time, the next one's turn comes.
  for (std::size_t i = 1; i < files.size(); ++i) {
    fs::remove(paths[i - 1]);
    folder.gantry_without({"check", "c.yaml", "--plugin-dir", "arg1", "--plugin-dir", "arg2"}, options);
    CHECK(folder.loaded().back() == paths[i]);
    CHECK(folder.loaded().size() == i + 1);
  }
}

TEST_CASE("the current directory is not searched unless it is asked for") {
  PluginFolder folder;
  folder.dir().write("good.so", built("test-good"));
  folder.dir().write("gantry/plugins/good.so", built("test-good"));
  folder.dir().write(".local/share/gantry/plugins/good.so", built("test-good"));
  folder.dir().write("c.yaml", job(kGood));
  for (const std::string path : {"", ":", "::", "/nonexistent::"}) {
    e2e::RunOptions options;
    options.env["GANTRY_PLUGIN_PATH"] = path;
    options.env["XDG_DATA_HOME"] = path.empty() ? "" : ".";
    options.env["HOME"] = ".";
    const e2e::RunResult result = folder.gantry_without({"run", "c.yaml"}, options);
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("unknown hook 'test/Good'") != std::string::npos);
    CHECK(folder.loaded().empty());
  }
  e2e::RunOptions asked;
  asked.env["GANTRY_PLUGIN_PATH"] = ".";
  CHECK(folder.gantry_without({"check", "c.yaml"}, asked).exit_code == 0);
  CHECK(folder.loaded() == std::vector<std::string>{folder.dir().path("good.so")});
}
