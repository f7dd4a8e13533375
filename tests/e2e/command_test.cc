#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "e2e/run.h"

// Commands that plugins provide. The fixture's are test.echo, test.echo.twice, test.raise, test.newer.

namespace {

e2e::RunResult gantry(std::vector<std::string> words) {
  const e2e::TempDir dir;
  words.insert(words.begin(), {"--plugin-dir", GANTRY_COMMANDS_DIR});
  return e2e::run_gantry(words, dir.path());
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a command of a plugin gets what follows its name untouched and its exit code is the program's") {
  const e2e::RunResult result = gantry({"test", "echo", "--plugin-dir", "a b", "--json", "-x", ""});
  INFO(result.describe());
  CHECK(result.exit_code == 7);
  CHECK(result.out == "I am test echo\n<--plugin-dir>\n<a b>\n<--json>\n<-x>\n<>\n");
  CHECK(has(result.err, "[test-commands] said it"));
}

TEST_CASE("the longest name of a command wins") {
  const e2e::RunResult result = gantry({"test", "echo", "twice", "more"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(result.out == "test echo twice 1\n");
}

TEST_CASE("a command is found by GANTRY_PLUGIN_PATH like every component") {
  const e2e::TempDir dir;
  const e2e::RunResult found =
      e2e::run_gantry({"test", "echo"}, dir.path(), {{{"GANTRY_PLUGIN_PATH", GANTRY_COMMANDS_DIR}}});
  INFO(found.describe());
  CHECK(found.exit_code == 7);
  CHECK(e2e::run_gantry({"test", "echo"}, dir.path()).exit_code == 2);
}

TEST_CASE("the level of the log stands before the name of a command") {
  const e2e::RunResult quiet = gantry({"--log-level=warn", "test", "echo"});
  CHECK(quiet.exit_code == 7);
  CHECK(quiet.err.empty());
  CHECK(has(gantry({"--log-level", "debug", "test", "echo"}).err, "loading plugin"));
}

TEST_CASE("the program answers the help of a command of a plugin") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"test", "echo", "--help"}, std::vector<std::string>{"test", "echo", "x", "-h"}}) {
    const e2e::RunResult result = gantry(words);
    INFO(result.describe());
    CHECK(result.exit_code == 0);
    CHECK(result.out == "usage: gantry test echo [WORD...]\n");
  }
}

TEST_CASE("an error of a command is its message and any other exception names the plugin") {
  const e2e::RunResult refused = gantry({"test", "raise", "error"});
  INFO(refused.describe());
  CHECK(refused.exit_code == 2);
  CHECK(refused.err == "error: there is no such thing\n");

  const e2e::RunResult broken = gantry({"test", "raise"});
  INFO(broken.describe());
  CHECK(broken.exit_code == 3);
  CHECK(has(broken.err, "internal error: "));
  CHECK(has(broken.err, "command test.raise of plugin test-commands 1.0.0"));
  CHECK(has(broken.err, "vector::at"));
}

TEST_CASE("a command that was built for another program is refused with both numbers") {
  const e2e::RunResult result = gantry({"test", "newer"});
  INFO(result.describe());
  CHECK(result.exit_code == 2);
  CHECK(has(result.err, "plugin built for 9, this host has 1"));
  CHECK(result.out.empty());
}

TEST_CASE("no plugin takes the place of a command of the program itself") {
  const e2e::RunResult result = gantry({"plugins", "list"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(has(result.out, "gantry-log"));
}

TEST_CASE("a misspelt command names the one that was meant wherever it comes from") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> misspelt = {
      {{"lst"}, "unknown command 'lst'; did you mean list?"},
      {{"inspct", "x"}, "unknown command 'inspct'; did you mean inspect?"},
      {{"plugin", "inspect"}, "unknown command 'plugin'; did you mean plugins inspect?"},
      {{"test", "ekho"}, "unknown command 'test ekho'; did you mean test echo?"},
      {{"plugins", "lost"}, "unknown command 'plugins lost'; did you mean plugins list?"},
      {{"plugins"}, "gantry plugins: expected check or list or inspect"},
  };
  for (const auto& [words, message] : misspelt) {
    const e2e::RunResult result = gantry(words);
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    CHECK(has(result.err, message));
    CHECK(has(result.err, "try: gantry --help"));
  }
}

TEST_CASE("the help of the program lists the commands of plugins with their summaries") {
  const e2e::RunResult result = gantry({"--help"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  const std::size_t section = result.out.find("\nfrom plugins\n");
  REQUIRE(section != std::string::npos);
  CHECK(result.out.find("  run  ") < section);
  const std::string plugins = result.out.substr(section);
  CHECK(has(plugins, "  inspect          show and check a checkpoint"));
  CHECK(has(plugins, "  test echo        Prints its arguments.\n"));
  CHECK(has(plugins, "  test newer       (cannot be used: see gantry plugins list)\n"));
}

TEST_CASE("commands are listed and described like other components") {
  const e2e::RunResult listed = gantry({"list", "command"});
  INFO(listed.describe());
  CHECK(listed.exit_code == 0);
  CHECK(has(listed.out, "command\n  inspect"));
  CHECK(has(listed.out, "test.echo        Prints its arguments. [test-commands 1.0.0]\n"));
  const e2e::RunResult described = gantry({"describe", "test.echo"});
  INFO(described.describe());
  CHECK(described.exit_code == 0);
  CHECK(has(described.out, "command test.echo\n  Prints its arguments.\n"));
  CHECK_FALSE(has(described.out, "yaml"));
}
