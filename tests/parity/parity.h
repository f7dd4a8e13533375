#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "e2e/run.h"
#include "gantry/safetensors.h"

namespace parity {

/// Tensors for a script, and texts that say what they are.
struct Numbers {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  std::vector<std::pair<std::string, std::string>> texts;
};

/// Hands all of `cases`, a file each, to a script of this folder, which fails where PyTorch's are others.
inline void compare(const std::string& script, const std::vector<Numbers>& cases) {
  const std::string python = GANTRY_SOURCE_DIR "/.venv/bin/python";
  if (!std::filesystem::exists(python)) {
    MESSAGE("skipped: there is no " << python);
    return;
  }
  const e2e::TempDir dir;
  std::vector<std::string> command = {python, GANTRY_SOURCE_DIR "/tests/parity/" + script};
  for (const Numbers& numbers : cases) {
    command.push_back("case" + std::to_string(command.size() - 2) + ".safetensors");
    gantry::write_safetensors(dir.path(command.back()), numbers.tensors, numbers.texts);
  }
  const e2e::RunResult result = e2e::run_program(command, dir.path());
  INFO(result.describe());
  CHECK(result.exit_code == 0);
}

}  // namespace parity
