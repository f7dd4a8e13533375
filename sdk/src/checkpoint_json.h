#pragma once

#include <string>
#include <string_view>

#include "gantry/checkpoint.h"

namespace gantry {

/// The three files of every checkpoint, and the account of them.
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kStateFile = "state.safetensors";
inline constexpr const char* kAccountFile = "checkpoint.json";

/// May it stand for an entry of a directory: no '/', not "." or "..", not empty, no control characters.
bool is_plain_name(std::string_view name);

/// The text of checkpoint.json. It ends with its own hash, and says nothing of the directory's name: a checkpoint may
/// be renamed and copied.
std::string checkpoint_json(const CheckpointInfo& info);

/// Throws gantry::Error that says what is wrong with the text, beginning "its checkpoint.json".
CheckpointInfo parse_checkpoint_json(std::string_view text);

/// Of a real directory, given by its path. The error's text goes behind the checkpoint's name.
CheckpointInfo read_checkpoint_directory(const std::string& path);

}  // namespace gantry
