#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

/// The name that the driver gives a GPU; empty where there is none to ask.
std::string device_name(c10::Device device);

struct Peak {
  double tflops;
  std::string of;  ///< "NVIDIA H200, tf32"
};

/// Of dense matrix products of this type, by the GPU's name; nothing for one that is not in the table. float32 is taken
/// as TF32, which convolutions use.
std::optional<Peak> known_peak(const std::string& name, at::ScalarType dtype);
