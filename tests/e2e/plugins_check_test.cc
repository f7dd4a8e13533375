#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "e2e/run.h"

// gantry plugins check: what it says of a third party's plugins, good and bad.

namespace {

namespace fs = std::filesystem;
using e2e::RunResult;

const std::string kForgetful = GANTRY_ACME_DIR "/forgetful/acme-drift-1.0.so";
const std::string kMended = GANTRY_ACME_DIR "/mended/acme-drift-1.1.so";
const std::string kFaults = GANTRY_ACME_DIR "/faults/acme-faults.so";
const std::string kHangs = GANTRY_ACME_DIR "/faults/acme-hangs.so";
const std::string kPicky = GANTRY_ACME_DIR "/faults/acme-picky.so";
const std::string kCrash = GANTRY_ACME_DIR "/faults/acme-crash.so";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The line about a component.
std::string line_about(const RunResult& result, const std::string& component) {
  const std::size_t at = result.out.find("  " + component + " ");
  return at == std::string::npos ? "" : result.out.substr(at, result.out.find('\n', at) - at);
}

/// Runs in a folder of its own with a folder for temporary files of its own, and leaves nothing in either.
RunResult check(std::vector<std::string> arguments, double timeout_s = 280) {
  const e2e::TempDir dir;
  fs::create_directories(dir.path("here"));
  fs::create_directories(dir.path("tmp"));
  arguments.insert(arguments.begin(), {"plugins", "check"});
  RunResult result = e2e::run_gantry(arguments, dir.path("here"),
                                     {{{"TMPDIR", dir.path("tmp")}, {"OMP_NUM_THREADS", "1"}}, timeout_s});
  CHECK(dir.list() == std::vector<std::string>{"here/", "tmp/"});
  return result;
}

}  // namespace

TEST_CASE("a hook that forgets is caught with what differs and why") {
  const RunResult result = check({kForgetful, "acme/Drift.INTERVAL=2"});
  INFO(result.describe());
  CHECK(result.exit_code == 1);
  CHECK(contains(result.out, "acme-drift 1.0.0 (" + kForgetful + ")"));
  const std::string drift = line_about(result, "hook acme/Drift");
  CHECK(contains(drift, "forgets: after going on, "));
  CHECK(contains(drift, "iteration 4"));  // steps 1 to 3 before the stop: the fourth would have shrunk the weights
  CHECK(contains(drift, "Callback"));
  CHECK(contains(drift, "nothing of it is in the checkpoint"));
  const std::string half = line_about(result, "hook acme/HalfDrift");
  CHECK(contains(half, "forgets: after going on, "));
  CHECK(contains(half, "its state in the checkpoint has factor"));
  CHECK(contains(line_about(result, "hook acme/Onlooker"), "ok"));
  CHECK(contains(result.out, "\n1 ok, 2 forgets\n"));
}

TEST_CASE("its mended twin is ok") {
  const RunResult result = check({kMended, "--json"});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(result.last_line() ==
        R"({"file": ")" + kMended + R"(", "plugin": "acme-drift 1.1.0", "usable": true, )" +
            R"("components": [{"kind": "hook", "name": "acme/Drift", "verdict": "ok", "why": ""}]})");
}

TEST_CASE("a crash and an exception and a state that cannot be taken back are told apart") {
  const RunResult result = check({kFaults});
  INFO(result.describe());
  CHECK(result.exit_code == 1);
  const auto says = [&](const std::string& component, const std::string& part) {
    INFO(component << ": " << line_about(result, component));
    CHECK(contains(line_about(result, component), part));
  };
  says("hook acme/Aborts",
       "fails: in a training of two iterations: it ended by SIGABRT; its last words: acme: no licence");
  says("hook acme/Throws", "fails: in a training of two iterations: ");
  says("hook acme/Throws", "the sensor is off");
  says("hook acme/Loses", "fails: when it is stopped and goes on: ");
  says("hook acme/Loses", "the sensor has moved");
  says("hook acme/DeclaresBadly", "fails: when its file is loaded: it ended by SIGABRT");
  says("command acme.hello", "ok");
  says("command acme.speechless", "fails: --help: it ended with exit code 3");
  CHECK(contains(result.out, "\n1 ok, 5 fails\n"));
}

TEST_CASE("a component that hangs is ended after its time") {
  const RunResult result = check({kHangs, "--timeout", "20"});
  INFO(result.describe());
  CHECK(result.exit_code == 1);
  CHECK(contains(line_about(result, "hook acme/Hangs"),
                 "fails: in a training of two iterations: it did not end within 20 s"));
}

TEST_CASE("what a component needs is said and taken from the command line") {
  const RunResult lacking = check({kPicky});
  INFO(lacking.describe());
  CHECK(lacking.exit_code == 0);
  CHECK(contains(line_about(lacking, "hook acme/Needs"),
                 "not tried: needs FACTOR (a number), UNIT (a string): give acme/Needs.FACTOR=VALUE"));
  const std::string refuses = line_about(lacking, "hook acme/Refuses");
  CHECK(contains(refuses, "not tried: it does not go with the toy training: "));
  CHECK(contains(refuses, "CALIBRATED must be true once the sensor is calibrated"));

  const RunResult given = check({kPicky, "acme/Needs.FACTOR=2", "acme/Needs.UNIT=ft", "acme/Refuses.CALIBRATED=true"});
  INFO(given.describe());
  CHECK(given.exit_code == 0);
  CHECK(contains(given.out, "\n2 ok\n"));
}

TEST_CASE("a plugin that crashes when it is loaded takes nothing down") {
  const RunResult result = check({kCrash});
  INFO(result.describe());
  CHECK(result.exit_code == 1);
  CHECK(contains(line_about(result, "hook acme/Never"), "fails: when its file is loaded: it ended by SIGSEGV"));
}

TEST_CASE("a file that is no plugin for this program is refused with the reason") {
  const e2e::TempDir dir;
  dir.write("a.so", "certainly no library");
  for (const auto& [path, part] : {std::pair<std::string, std::string>{dir.path("a.so"), "not an ELF file"},
                                   {dir.path("none.so"), "none.so"},
                                   {GANTRY_COMMANDS_DIR "/test-commands.so", "command 'test.newer'"}}) {
    const RunResult result = check({path});
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    CHECK(contains(result.out, part));
    const RunResult json = check({path, "--json"});
    CHECK(e2e::json_value(json.last_line(), {"usable"}) == "false");
    CHECK(contains(*e2e::json_value(json.last_line(), {"why"}), part == "none.so" ? "" : part));
  }
}

TEST_CASE("wrong arguments of plugins check are refused") {
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{}, "expected a plugin's file"},
      {{kMended, "--quick"}, "unknown option '--quick'"},
      {{kMended, "--timeout", "soon"}, "--timeout is 'soon': expected whole seconds"},
      {{kMended, "--timeout"}, "--timeout needs a value"},
      {{kMended, "Drift"}, "'Drift' is no NAME.KEY=VALUE"},
      {{kMended, "acme/Shift.INTERVAL=2"}, "is for no component of this file, which provides hook acme/Drift"},
      {{kMended, "acme/Drift.INTERVALL=2"}, "hook acme/Drift has no key 'INTERVALL'; did you mean 'INTERVAL'?"},
  };
  for (const auto& [arguments, part] : wrong) {
    const RunResult result = check(arguments);
    INFO(result.describe());
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, part));
  }
  const RunResult bad_value = check({kMended, "acme/Drift.INTERVAL=0"});
  INFO(bad_value.describe());
  CHECK(bad_value.exit_code == 0);
  CHECK(contains(line_about(bad_value, "hook acme/Drift"), "INTERVAL must be >= 1, got 0"));
}

TEST_CASE("with a work dir the trainings and their logs stay") {
  const e2e::TempDir dir;
  const RunResult result = check({kMended, "--work-dir", dir.path("kept")});
  INFO(result.describe());
  CHECK(result.exit_code == 0);
  CHECK(contains(dir.read("kept/hook-acme-Drift/toy.yaml"), "acme/Drift"));
  CHECK(dir.has("kept/hook-acme-Drift/report.json"));
  const RunResult again = check({kMended, "--work-dir", dir.path("kept")});
  CHECK(again.exit_code == 2);
  CHECK(contains(again.err, "is not empty"));
}

TEST_CASE("ended by a signal it leaves no process and no file") {
  const e2e::TempDir dir;
  const std::string script =
      "\"$@\" >out.txt & run=$!; until ls tmp/*/*/train.out 2>/dev/null; do sleep 0.05; done; sleep 0.5; "
      "kill -TERM $run; wait $run; echo \"exit $?\" >>out.txt; sleep 0.2; ls tmp >>out.txt; "
      "for p in /proc/[0-9]*; do case \"$(readlink $p/cwd)\" in \"$PWD/tmp\"*) echo \"left $p\" >>out.txt;; esac; done";
  fs::create_directories(dir.path("tmp"));
  const RunResult result =
      e2e::run_program({"/bin/sh", "-c", script, "sh", GANTRY_BINARY, "plugins", "check", kHangs, "--timeout", "100"},
                       dir.path(), {{{"TMPDIR", dir.path("tmp")}, {"GANTRY_PLUGIN_PATH", ""}}, 60});
  INFO(result.describe());
  CHECK(dir.read("out.txt") == "acme-hangs 1.0.0 (" + kHangs + ")\nexit 143\n");
}
