#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plugin_folder.h"

// Files that are no plugin, or not one for this program: never loaded, listed with the reason, in nobody's way, and
// named with both sides where a configuration needs them. test-good provides the hook test/Good; each file here is
// made from it unless said otherwise.

namespace fs = std::filesystem;

namespace {

using bad_plugins::built;
using bad_plugins::cut;
using bad_plugins::PluginFolder;
using bad_plugins::rebuilt;
using bad_plugins::with_note;

struct Difference {
  std::string field, plugin, host;
  std::string line(const std::string& value) const { return field + "=" + value + "\n"; }
  std::string verdict() const {
    return "plugin built for " + plugin + ", this host " + (field == "torch" ? "runs " : "has ") + host;
  }
};

std::string value_in(const std::string& text, const std::string& key) {
  const std::size_t begin = text.find("\n" + key + "=") + key.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Each field that must agree, as a plugin of another build would have it.
std::vector<Difference> differences() {
  const std::string bytes = built("test-good");
  std::vector<Difference> all;
  for (const auto& [field, plugin] : std::vector<std::pair<std::string, std::string>>{
           {"sdk_abi", "7"}, {"torch", "2.10.0"}, {"cxx11_abi", "0"}, {"debug_stl", "1"}, {"sanitizer", "leak"}}) {
    all.push_back({field, plugin, value_in(bytes, field)});
    all.back().plugin.resize(all.back().host.size(), '0');
  }
  return all;
}

std::string of_another_build(const Difference& difference) {
  return rebuilt(built("test-good"), difference.line(difference.host), difference.line(difference.plugin));
}

}  // namespace

TEST_CASE("the plugin that all bad ones are made from is loaded and leaves its mark") {
  PluginFolder folder;
  folder.add("good.so", built("test-good"));
  folder.check_listed("good.so", {"test-good 1.0.0  ok"});
  folder.check_unneeded();
  CHECK(folder.loaded().empty());
  const e2e::RunResult result = folder.run_with("{NAME: test/Good}");
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(folder.loaded() == std::vector<std::string>{folder.path("good.so")});
}

TEST_CASE("a plugin of another SDK ABI or LibTorch or C++ library is refused with both values and never loaded") {
  for (const Difference& difference : differences()) {
    CAPTURE(difference.field);
    REQUIRE(difference.plugin != difference.host);
    PluginFolder folder;
    folder.add("other.so", of_another_build(difference));
    folder.check_listed("other.so", {"test-good 1.0.0  incompatible: ", difference.field, difference.verdict()});
    folder.check_unneeded();
    folder.check_refused("test/Good", {folder.path("other.so"), "(test-good 1.0.0)", difference.verdict(),
                                       "rebuild the plugin: cmake", "-DCMAKE_PREFIX_PATH=" GANTRY_BUILD_DIR});
    CHECK(folder.loaded().empty());
  }
}

TEST_CASE("all differences of a plugin are named together") {
  PluginFolder folder;
  const std::vector<Difference> all = differences();
  std::string bytes = built("test-good");
  std::vector<std::string> verdicts;
  for (const Difference& difference : all) {
    bytes = rebuilt(bytes, difference.line(difference.host), difference.line(difference.plugin));
    verdicts.push_back(difference.verdict());
  }
  folder.add("other.so", bytes);
  folder.check_listed("other.so", verdicts);
  folder.check_refused("test/Good", verdicts);
  CHECK(folder.loaded().empty());
}

TEST_CASE("a file cut at any length is listed as incomplete and never loaded") {
  const std::string whole = built("test-good");
  for (const int percent : {0, 1, 5, 20, 50, 80, 90, 99}) {
    CAPTURE(percent);
    PluginFolder folder;
    const std::string part = cut(whole, percent);
    folder.add("cut.so", part);
    std::string reason = "empty file";
    if (percent > 0) reason = "incomplete file (" + std::to_string(part.size()) + " of ";
    folder.check_listed("cut.so", {"skipped: " + reason});
    folder.check_unneeded();
    folder.check_refused("test/Good", {"unknown hook", "not used: " + folder.path("cut.so") + ": skipped: " + reason});
    CHECK(folder.loaded().empty());
  }
}

TEST_CASE("what is no plugin is listed with the reason and does not stop a run") {
  struct Case {
    std::string file, reason;
  };
  const std::vector<Case> cases = {{"directory.so", "a directory"},   {"dangling.so", "a link to nothing"},
                                   {"fifo.so", "not a regular file"}, {"magic.so", "incomplete file (4 bytes"},
                                   {"text.so", "not an ELF file"},    {"sdk.so", "not a Gantry plugin"}};
  PluginFolder folder;
  fs::create_directories(folder.path("directory.so"));
  fs::create_symlink("nowhere.so", folder.path("dangling.so"));
  REQUIRE(mkfifo(folder.path("fifo.so").c_str(), 0600) == 0);
  folder.add("magic.so", "\177ELF").add("text.so", "GANTRY is only a word here\n");
  fs::copy_file(GANTRY_BUILD_DIR "/lib/libgantry_sdk.so", folder.path("sdk.so"));
  for (const Case& bad : cases) folder.check_listed(bad.file, {bad.file + "  skipped: ", bad.reason});
  folder.check_unneeded();
  // The message about a missing name shows five of the files at most.
  folder.check_refused(
      "test/Good", {"unknown hook", "directory.so: skipped: a directory", "and 1 more file", "gantry plugins list"});
}

TEST_CASE("components without a plugin and a plugin without components are listed") {
  PluginFolder folder;
  folder.add("nameless.so", built("test-nameless")).add("empty.so", built("test-empty"));
  folder.check_listed("nameless.so", {"skipped: ", "components without GANTRY_PLUGIN(name, version)"});
  folder.check_listed("empty.so", {"test-empty 1.0.0  ok"});
  folder.check_unneeded();
  folder.check_refused("test/Nameless", {"unknown hook", folder.path("nameless.so"), "GANTRY_PLUGIN"});
  CHECK(folder.loaded().empty());
}

TEST_CASE("a note that the code contradicts is refused") {
  struct Case {
    std::string from, to, name, reason;
  };
  const std::vector<Case> cases = {
      {"version=1.0.0\n", "version=1.0.1\n", "test/Good", "note was changed after it was built"},
      {"compiler=", "compilex=", "test/Good", "note was changed after it was built"},
      {"test/Good\n", "test/Gold\n", "test/Gold", "it provides hook 'test/Good', which its notes do not mention"}};
  for (const Case& bad : cases) {
    CAPTURE(bad.to);
    PluginFolder folder;
    folder.add("liar.so", with_note(built("test-good"), bad.from, bad.to));
    folder.check_unneeded();
    CHECK(folder.loaded().empty());
    folder.check_refused(bad.name, {folder.path("liar.so"), bad.reason});
  }
}

TEST_CASE("a plugin without the function that every plugin exports is refused") {
  PluginFolder folder;
  folder.add("mute.so", rebuilt(built("test-good"), "gantry_plugin_info", "gantry_plugin_infx"));
  folder.check_unneeded();
  folder.check_refused("test/Good", {folder.path("mute.so"), "it does not export gantry_plugin_info"});
}

TEST_CASE("a component of a newer kind is refused alone and the others of its plugin work") {
  PluginFolder folder;
  folder.add("mixed.so", built("test-mixed"));
  folder.check_listed("mixed.so",
                      {"test-mixed 1.0.0  incompatible: ", "hook 'test/Newer': plugin built for 9, this host has 2",
                       "gadget 'test/Gadget': plugin built for 1, this host does not know this kind"});
  folder.check_unneeded();
  folder.check_refused("test/Newer", {folder.path("mixed.so"), "hook ABI", "plugin built for 9, this host has 2"});
  folder.check_refused("test/Gadget", {"unknown hook", "'test/Gadget' is the name of a gadget"});
  CHECK(folder.loaded().empty());
  const e2e::RunResult result = folder.run_with("{NAME: test/Fits}");
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(folder.loaded() == std::vector<std::string>{folder.path("mixed.so")});
}

TEST_CASE("a name from two files is refused with both and can be pinned to one") {
  PluginFolder folder;
  folder.add("good.so", built("test-good")).add("twin.so", built("test-twin"));
  folder.check_listed("good.so", {"conflict: hook 'test/Good' is also in " + folder.path("twin.so")});
  folder.check_listed("twin.so", {"conflict: hook 'test/Good' is also in " + folder.path("good.so")});
  folder.check_unneeded();
  folder.check_refused("test/Good", {"two plugins provide hook 'test/Good'", folder.path("good.so"), "test-good 1.0.0",
                                     folder.path("twin.so"), "test-twin 2.0.0", "PLUGIN: "});
  CHECK(folder.loaded().empty());
  const e2e::RunResult result = folder.run_with("{NAME: test/Good, PLUGIN: plugins/twin.so}");
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(folder.loaded() == std::vector<std::string>{folder.path("twin.so")});
}

TEST_CASE("two builds of one version are two plugins") {
  PluginFolder folder;
  folder.add("a.so", built("test-good")).add("b.so", rebuilt(built("test-good"), "compiler=gcc", "compiler=GCC"));
  folder.check_listed("a.so", {"conflict: "});
  folder.check_refused("test/Good", {"two plugins provide", folder.path("a.so"), folder.path("b.so")});
  CHECK(folder.loaded().empty());
}

TEST_CASE("copies of one plugin give a warning and the first is used") {
  PluginFolder folder;
  folder.add("b.so", built("test-good")).add("a.so", built("test-good"));
  fs::create_symlink("a.so", folder.path("c.so"));  // the same file: not even a warning
  folder.check_listed("a.so", {"test-good 1.0.0  ok"});
  folder.check_listed("b.so", {"duplicate of " + folder.path("a.so")});
  const e2e::RunResult result = folder.run_with("{NAME: test/Good}");
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  const std::string log = result.out + result.err;
  CHECK(log.find("copies of one plugin were found; the first is used\n  file   " + folder.path("a.so")) !=
        std::string::npos);
  CHECK(log.find(folder.path("b.so")) != std::string::npos);
  CHECK(log.find(folder.path("c.so")) == std::string::npos);
  CHECK(folder.loaded() == std::vector<std::string>{folder.path("a.so")});
}

TEST_CASE("a library that a plugin needs and that is missing is named") {
  PluginFolder folder;
  folder.add("needs.so", built("test-needs-helper")).add("lib/libtest_helper.so", built("lib/libtest_helper"));
  const e2e::RunResult whole = folder.run_with("{NAME: test/NeedsHelper}");
  INFO(whole.describe());
  REQUIRE(whole.exit_code == 0);
  fs::remove_all(folder.dir().path("work"));
  fs::remove(folder.path("lib/libtest_helper.so"));
  // The file itself is sound: what is missing shows when it is loaded.
  folder.check_listed("needs.so", {"test-needs-helper 1.0.0  ok"});
  folder.check_unneeded();
  folder.check_refused("test/NeedsHelper", {folder.path("needs.so"), "libtest_helper.so", "No such file"});
}

TEST_CASE("an undefined symbol is found before training and not when it is called") {
  PluginFolder folder;
  folder.add("undefined.so", built("test-undefined"));
  folder.check_unneeded();
  folder.check_refused("test/Undefined", {folder.path("undefined.so"), "undefined symbol: function_that_nobody_wrote"});
}

// An exception cannot pass through the C library's dlopen, which ends the process.
TEST_CASE("a plugin whose static initialiser throws is named before the program ends and stops nobody else") {
  PluginFolder folder;
  folder.add("throws.so", built("test-throws-at-load"));
  folder.check_listed("throws.so", {"test-throws-at-load 1.0.0  ok"});
  folder.check_unneeded();
  folder.dir().write("c.yaml", bad_plugins::job("{NAME: test/ThrowsAtLoad}"));
  const e2e::RunResult result = folder.gantry({"run", "c.yaml"});
  INFO(result.describe());
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("thrown while loading") != std::string::npos);
  CHECK(result.err.find(folder.path("throws.so")) != std::string::npos);
  CHECK_FALSE(folder.dir().has("work"));
}

TEST_CASE("an exception from the declaration of parameters is reported as the plugin's") {
  PluginFolder folder;
  folder.add("throws.so", built("test-throws-in-declare"));
  folder.check_listed("throws.so", {"ok"});
  folder.check_unneeded();
  folder.check_refused("test/ThrowsInDeclare",
                       {folder.path("throws.so"), "declaring its parameters failed: thrown while declaring"});
}

TEST_CASE("a folder full of bad files is listed and passed over as a whole") {
  PluginFolder folder;
  std::size_t count = 0;
  const auto add = [&](const std::string& bytes) { folder.add("bad" + std::to_string(count++) + ".so", bytes); };
  for (const Difference& difference : differences()) add(of_another_build(difference));
  for (const int percent : {0, 1, 5, 20, 50, 80, 90, 99}) add(cut(built("test-good"), percent));
  add("no plugin\n");
  add(built("test-nameless"));
  const e2e::RunResult listed = folder.gantry({"plugins", "list"});
  INFO(listed.describe());
  CHECK(listed.exit_code == 0);
  for (std::size_t i = 0; i < count; ++i)
    CHECK(listed.out.find(folder.path("bad" + std::to_string(i) + ".so")) != std::string::npos);
  folder.check_unneeded();
  CHECK(folder.gantry({"list"}).exit_code == 0);
  CHECK(folder.loaded().empty());
}

TEST_CASE("inspecting a file says whether it fits without loading it") {
  PluginFolder folder;
  const Difference torch = differences()[1];
  folder.add("good.so", built("test-good")).add("other.so", of_another_build(torch));
  folder.add("cut.so", cut(built("test-good"), 50));

  const e2e::RunResult good = folder.gantry_without({"plugins", "inspect", "plugins/good.so"});
  INFO(good.describe());
  CHECK(good.exit_code == 0);
  for (const std::string part : {"test-good 1.0.0", "hook test/Good, ABI 2 (host 2)", "status    ok"})
    CHECK(good.out.find(part) != std::string::npos);

  const e2e::RunResult other = folder.gantry_without({"plugins", "inspect", "plugins/other.so"});
  INFO(other.describe());
  CHECK(other.exit_code == 2);
  for (const std::string part : {"differs", "status    incompatible: "})
    CHECK(other.out.find(part) != std::string::npos);
  CHECK(other.out.find(torch.verdict()) != std::string::npos);

  const e2e::RunResult broken = folder.gantry_without({"plugins", "inspect", "plugins/cut.so"});
  INFO(broken.describe());
  CHECK(broken.exit_code == 2);
  CHECK(broken.out.find("status    skipped: incomplete file (") != std::string::npos);

  const e2e::RunResult absent = folder.gantry_without({"plugins", "inspect", "plugins/absent.so"});
  CHECK(absent.exit_code == 2);
  CHECK(absent.out.find("no such file") != std::string::npos);

  const e2e::RunResult json = folder.gantry_without({"plugins", "inspect", "--json", "plugins/good.so"});
  CHECK(e2e::json_value(json.last_line(), {"name"}) == "test-good");
  CHECK(e2e::json_value(json.last_line(), {"status"}) == "ok");
  CHECK(folder.loaded().empty());
}
