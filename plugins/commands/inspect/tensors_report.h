#pragma once

#include <gantry/safetensors.h>

#include <cstdint>
#include <string>

/// What is in a safetensors file, for a person and as a JSON object.
std::string tensors_text(const gantry::SafetensorsFile& file);
std::string tensors_json(const gantry::SafetensorsFile& file);

/// How many numbers all its tensors hold.
int64_t numbers_in(const gantry::SafetensorsFile& file);
