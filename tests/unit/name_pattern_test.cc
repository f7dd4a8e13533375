#include "gantry/name_pattern.h"

#include <doctest/doctest.h>

#include "config_files.h"
#include "messages.h"

using gantry::NamePattern;

namespace {

NamePattern pattern(const std::string& text) { return NamePattern(flow("{KEYS: x}", "a.yaml", 7), "KEYS", text); }

}  // namespace

TEST_CASE("a name pattern is looked for anywhere in the name") {
  CHECK(pattern("layer1").found_in("backbone.layer1.0.weight"));
  CHECK(pattern("backbone.layer1").found_in("backbone.layer1.0.weight"));
  CHECK_FALSE(pattern("^layer1").found_in("backbone.layer1.0.weight"));
  CHECK(pattern("bias$").found_in("head.bias"));
  CHECK_FALSE(pattern("bias$").found_in("head.bias.scale"));
  CHECK(pattern(R"(^head\.)").found_in("head.weight"));
  CHECK_FALSE(pattern(R"(^head\.)").found_in("header.weight"));
  CHECK(pattern(R"(layers\.([02468])\.)").found_in("layers.4.weight"));
}

TEST_CASE("a name pattern replaces each place that matches and knows its groups") {
  CHECK(pattern(R"(^module\.)").replaced("module.net.module.w", "") == "net.module.w");
  CHECK(pattern("a").replaced("banana", "o") == "bonono");
  CHECK(pattern(R"(block(\d+)\.)").replaced("net.block12.w", "layers.$1.") == "net.layers.12.w");
  CHECK(pattern("^").replaced("w", "model.") == "model.w");
  CHECK(pattern("x").replaced("weight", "y") == "weight");
}

TEST_CASE("a text that is no regular expression is refused with its place and what is wrong") {
  struct Case {
    const char *text, *defect;
  };
  for (const Case& c : {Case{"[a", "a '[' is not closed"}, Case{"(a", "its '(' and ')' do not match"},
                        Case{"*a", "has nothing before it to repeat"}, Case{"a{2", "its '{' and '}' do not match"},
                        Case{"[z-a]", "ends before it begins"}, Case{"a\\", "a '\\'"}}) {
    const std::string message = message_of<gantry::ConfigError>([&] { pattern(c.text); });
    INFO(message);
    CHECK(message.starts_with(std::string("a.yaml:7: KEYS: '") + c.text + "' is no regular expression"));
    CHECK(contains(message, c.defect));
  }
}

TEST_CASE("a list of patterns has one for each text") {
  const gantry::Config config = flow("{KEYS: [bias$, ^head], NONE: []}");
  const auto patterns = gantry::name_patterns(config, "KEYS");
  REQUIRE(patterns.size() == 2);
  CHECK(patterns[1].text() == "^head");
  CHECK(gantry::any_found_in(patterns, "a.bias"));
  CHECK(gantry::any_found_in(patterns, "head.weight"));
  CHECK_FALSE(gantry::any_found_in(patterns, "a.weight"));
  CHECK_FALSE(gantry::any_found_in(gantry::name_patterns(config, "NONE"), "a.bias"));
}
