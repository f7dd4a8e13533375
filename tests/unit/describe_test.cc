#include <doctest/doctest.h>
#include <gantry/describe.h>

#include <string>

namespace {

gantry::ComponentInfo example(const std::string& kind) {
  gantry::ComponentInfo info{kind, "acme/Any", "Does it.", "acme", "1.0.0", "/p/acme.so", {}};
  gantry::Parameters& p = info.parameters;
  p.add<int64_t>("SIZE").at_least(1).help("How much.");
  p.add<double>("LEARNING_RATE", 0.5).unit("per step");
  p.add<std::string>("WAY", "short").choices({"short", "long"});
  p.optional<std::string>("PATH");
  p.add<std::vector<int64_t>>("STEPS", {1, 2});
  return info;
}

}  // namespace

TEST_CASE("a component is described by what it declares and YAML to start from") {
  gantry::ComponentInfo info = example("dataset");
  info.parameters.neutral();
  CHECK(gantry::component_text(info) == R"(dataset acme/Any
  Does it.
  from acme 1.0.0 (/p/acme.so)
  Changes nothing that is computed.

parameters
  SIZE           required; an integer, >= 1
                 How much.
  LEARNING_RATE  default 0.5; a number, per step
  WAY            default short; a string, one of short | long
  PATH           optional; a string
  STEPS          default [1, 2]; a list of integers

yaml
TRAIN_DATA:
  NAME: acme/Any
  SIZE:  # required: an integer, >= 1
  LEARNING_RATE: 0.5  # a number, per step
  WAY: short  # a string, one of short | long
  # PATH:  # a string
  STEPS: [1, 2]  # a list of integers
)");
}

TEST_CASE("the YAML of a hook is an item of a list") {
  const std::string text = gantry::component_text(example("hook"));
  CHECK(text.find("yaml\n- NAME: acme/Any\n  SIZE:") != std::string::npos);
}

TEST_CASE("components are listed under their kinds in columns") {
  const std::vector<gantry::ComponentInfo> components = {{"hook", "A", "First.", "one", "1", "", {}},
                                                         {"hook", "Longer", "Second.", "one", "1", "", {}},
                                                         {"loss", "B", "Third.", "two", "2", "", {}}};
  CHECK(gantry::components_text(components) ==
        "hook\n  A       First. [one 1]\n  Longer  Second. [one 1]\n\nloss\n  B       Third. [two 2]\n");
  CHECK(gantry::components_json({components[2]}) ==
        R"([{"kind": "loss", "name": "B", "summary": "Third.", "plugin": "two", "version": "2", "file": "", )"
        R"("parameters": [], "foreign": []}])");
}
