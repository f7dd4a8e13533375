#include "host/yaml_reader.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <boost/filesystem.hpp>  // LibTorch exports a std::filesystem::remove_all that crashes
#include <filesystem>
#include <fstream>
#include <string>

#include "gantry/error.h"
#include "gantry/text.h"

namespace {

using gantry::cat;
using gantry::Config;
using gantry::ConfigError;
using gantry::host::read_yaml_file;
using gantry::host::read_yaml_text;

Config read(const std::string& text) { return read_yaml_text(text, "a.yaml"); }

/// The message of the error that reading `text` must end in; "" when it does not.
std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool fails_with(const std::string& text, const std::string& place, const std::string& part) {
  const std::string message = error_of(text);
  const bool as_expected = message.starts_with(place + ": ") && message.find(part) != std::string::npos;
  if (!as_expected) MESSAGE("got: '", message, "'");
  return as_expected;
}

struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "gantry-yaml-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() { boost::filesystem::remove_all(path.string()); }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("values keep their type and their place") {
  const Config config = read("A: 1\nB:\n  - x\n  - 'y'\nC: {D: ~, E: \"2\"}\n\nF:\n");
  CHECK(config.find("A")->as<int64_t>() == 1);
  CHECK(config.find("A")->where().str() == "a.yaml:1");
  const Config& list = *config.find("B");
  REQUIRE(list.items().size() == 2);
  CHECK(list.items()[0].where().line == 3);
  CHECK_FALSE(list.items()[0].quoted());
  CHECK(list.items()[1].where().line == 4);
  CHECK(list.items()[1].quoted());
  CHECK(config.find("C")->find("D")->is_null());
  CHECK(config.find("C")->find("E")->quoted());
  CHECK(config.find("F")->is_null());
  CHECK(config.entries()[3].where.line == 7);
}

TEST_CASE("a text tag makes a string of a number and other tags are refused") {
  CHECK(read("A: !!str 12").find("A")->quoted());
  CHECK_FALSE(read("A: 12").find("A")->quoted());
  CHECK(fails_with("B: 1\nA: !!python/object 1\n", "a.yaml:2", "tag"));
  CHECK(fails_with("A: !mine [1]\n", "a.yaml:1", "tag"));
  CHECK(fails_with("A: !!str {B: 1}\n", "a.yaml:1", "tag"));
}

TEST_CASE("an alias stands for the value that it names") {
  const Config config = read("A: &x {B: [1, 2]}\nC: *x\nD: [*x, *x]\n");
  CHECK(config.find("C")->find("B")->items().size() == 2);
  CHECK(config.find("C")->where().line == 1);
  CHECK(config.find("D")->items()[1].find("B")->items()[1].as<int64_t>() == 2);
}

TEST_CASE("an alias inside its own value or without an anchor is refused") {
  CHECK(fails_with("A: 1\nB: &x [1, *x]\n", "a.yaml:2", "inside"));
  CHECK(fails_with("A: 1\nB: *nowhere\n", "a.yaml:2", "anchor"));
}

TEST_CASE("an alias bomb is refused at once and its anchor is named") {
  std::string bomb = "A0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    bomb += cat("A", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) bomb += cat(j == 0 ? "*a" : ", *a", i - 1);
    bomb += "]\n";
  }
  // 10 times 11111 values and more: the fifth line repeats what the fourth anchors.
  CHECK(fails_with(bomb, "a.yaml:4", "'&a3'"));
}

TEST_CASE("more values than any configuration has are refused") {
  std::string text = "A: [1";
  for (int i = 0; i < 100'001; ++i) text += ",1";
  CHECK(fails_with(text + "]", "a.yaml:1", "more than 100000 values"));
}

TEST_CASE("a duplicate key is refused with both lines") {
  CHECK(fails_with("A: 1\nB: 2\nA: 3\n", "a.yaml:3", "duplicate key 'A': it is already given in line 1"));
  CHECK(fails_with("S:\n  A: 1\n  \"A\": 3\n", "a.yaml:3", "in line 2"));
  CHECK(error_of("S: {A: 1}\nT: {A: 1}\n").empty());
}

TEST_CASE("keys that are no text are refused") {
  CHECK(fails_with("[1, 2]: 3\n", "a.yaml:1", "cannot be a key"));
  CHECK(fails_with("A: {{B: 1}: 2}\n", "a.yaml:1", "cannot be a key"));
  CHECK(fails_with("A: &x y\n*x : 1\n", "a.yaml:2", "cannot be a key"));
  CHECK(fails_with("~: 1\n", "a.yaml:1", "key"));
  CHECK(fails_with("A: &x {B: 1}\nC:\n  <<: *x\n", "a.yaml:3", "merge keys"));
}

TEST_CASE("files that hold no map are refused") {
  CHECK(fails_with("", "a.yaml:1", "empty"));
  CHECK(fails_with("# a comment\n\n", "a.yaml:1", "empty"));
  CHECK(fails_with("---\n", "a.yaml:1", "empty"));
  CHECK(fails_with("\n- 1\n", "a.yaml:2", "top level"));
  CHECK(fails_with("hello\n", "a.yaml:1", "top level"));
}

TEST_CASE("a second document is refused") {
  CHECK(fails_with("A: 1\n---\nB: 2\n", "a.yaml:2", "one YAML document"));
  CHECK(error_of("---\nA: 1\n...\n").empty());
}

TEST_CASE("text that is no YAML is refused with its line") {
  CHECK(fails_with("A: 1\nB: [1, 2\n", "a.yaml:3", "not valid YAML"));
  CHECK(fails_with("A: 1\nB: C: D\n", "a.yaml:2", "not valid YAML"));
  CHECK(fails_with("Z: 1\nA: 'x\nB: y\n", "a.yaml:2", "a quote"));
  CHECK(fails_with("Z: 1\nA: \"x", "a.yaml:2", "a quote"));
  CHECK(read("A: |\n  x").find("A")->text() == "x\n");
  CHECK_FALSE(error_of("A: 1\n}\n").empty());
  CHECK_FALSE(error_of("A: ]\n").empty());
}

TEST_CASE("bytes that no text file has are refused with their line") {
  CHECK(fails_with(std::string("A: 1\nB: x\0y\n", 12), "a.yaml:2", "NUL"));
  CHECK(fails_with("A: 1\n\nB: \x1b[31m\n", "a.yaml:3", "control character"));
  CHECK(fails_with("A: 1\nB: \xff\xfe\n", "a.yaml:2", "UTF-8"));
  CHECK(fails_with("A: \xc0\x80\n", "a.yaml:1", "UTF-8"));
  CHECK(fails_with("A: \xed\xa0\x80\n", "a.yaml:1", "UTF-8"));
  CHECK(read("A: größe 训练 😀\n").find("A")->text() == "größe 训练 😀");
  CHECK(read("\xef\xbb\xbf"
             "A: 1\r\nB: 2\r\n")
            .find("B")
            ->as<int64_t>() == 2);
}

TEST_CASE("nesting has a limit of 100 levels") {
  const auto nested = [](int levels) { return "A: " + std::string(levels, '[') + std::string(levels, ']') + "\n"; };
  CHECK(error_of(nested(99)).empty());
  CHECK(fails_with(nested(100), "a.yaml:1", "100 levels"));
  CHECK(fails_with(nested(1'000'000), "a.yaml:1", "100 levels"));
  std::string block;
  for (int i = 0; i < 200; ++i) block += std::string(i, ' ') + "A:\n";
  CHECK(fails_with(block, "a.yaml:101", "100 levels"));
}

TEST_CASE("missing files and directories and files too large are refused by name") {
  const TemporaryDirectory directory;
  const std::string missing = (directory.path / "missing.yaml").string();
  CHECK_THROWS_WITH_AS(read_yaml_file(missing), doctest::Contains("missing.yaml: cannot read the file"), ConfigError);
  CHECK_THROWS_WITH_AS(read_yaml_file(directory.path.string()), doctest::Contains("a directory"), ConfigError);
  const std::string large = (directory.path / "large.yaml").string();
  std::ofstream(large) << "A: 1\n#" << std::string(10'000'000, 'x');
  CHECK_THROWS_WITH_AS(read_yaml_file(large), doctest::Contains("10000000 bytes"), ConfigError);
  const std::string good = (directory.path / "good.yaml").string();
  std::ofstream(good) << "A: 1\nB: 2\n";
  const Config config = read_yaml_file(good);
  CHECK(config.find("B")->where().str() == good + ":2");
}

TEST_CASE("a damaged file gives a value or an error with its place") {
  const std::string text =
      "# job\nENV: {SEED: 1}\nZ: &s >\n  folded\nSOLVER:\n  NAME: 'T'\n  HOOKS:\n    - {NAME: \"A\\n\", X: [1, 2.5, "
      "~]}\n"
      "    - NAME: |\n        long\n  COPY: [*s, !!str 3]\n";
  REQUIRE(error_of(text) == "");
  int errors = 0;
  const auto attempt = [&](const std::string& damaged) {
    try {
      const Config config = read(damaged);
      CHECK(config.type() == Config::Type::map);
    } catch (const ConfigError& error) {
      ++errors;
      CHECK(error.where().file == "a.yaml");
      CHECK(error.where().line >= 1);
    }
  };
  for (std::size_t length = 0; length <= text.size(); ++length) attempt(text.substr(0, length));
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c :
         {'\0', '\xff', '{', '[', ']', '}', ':', '-', '&', '*', '!', '\'', '"', '\n', '\t', '?', '|', '%'}) {
      std::string damaged = text;
      damaged[at] = c;
      attempt(damaged);
      damaged = text;
      damaged.insert(at, 1, c);
      attempt(damaged);
    }
  }
  CHECK(errors > 1000);
}
