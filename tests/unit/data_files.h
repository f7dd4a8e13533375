#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "unit/files.h"

/// What data_files.py writes, in a folder of its own. Empty, with a message, where there is no .venv.
class DataFiles {
 public:
  DataFiles() {
    if (!std::filesystem::exists(GANTRY_VENV_PYTHON)) {
      MESSAGE("skipped: there is no .venv to write the files with");
      return;
    }
    const std::string command = std::string(GANTRY_VENV_PYTHON " " GANTRY_DATA_FILES " ") + (directory_ / "data");
    REQUIRE(std::system(command.c_str()) == 0);
    made_ = true;
  }
  explicit operator bool() const { return made_; }
  std::string operator/(const std::string& name) const { return directory_ / ("data/" + name); }

 private:
  TemporaryDirectory directory_;
  bool made_ = false;
};
