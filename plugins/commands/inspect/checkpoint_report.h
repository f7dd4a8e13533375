#pragma once

#include <gantry/checkpoint.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A checkpoint's account, and what its files really are.
struct CheckpointReport {
  struct File {
    gantry::CheckpointInfo::File expected;
    std::string problem;  ///< empty: the file is as it was written
    int64_t tensors = 0, numbers = 0;
  };

  gantry::CheckpointInfo info;
  std::vector<File> files;

  bool whole() const;
  int64_t bytes() const;      ///< as its account says
  const File* model() const;  ///< null when the account names none
  std::string text() const;
  std::string json() const;
};

/// Reads every byte of the checkpoint. Throws gantry::Error when its account cannot be read.
CheckpointReport examine_checkpoint(const std::string& path);
