#pragma once

#include <c10/core/Device.h>

#include <string>

/// "mem 1.2/1.5 GiB": what this process's tensors take of a GPU's memory, now and at most so far.
std::string device_memory_text(c10::Device device);
