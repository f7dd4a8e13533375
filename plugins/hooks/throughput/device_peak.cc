#include "device_peak.h"

#include <dlfcn.h>

#include <string_view>

namespace {

/// From the makers' data sheets, in TFLOP/s without sparsity. A longer name stands before those that it contains.
struct KnownDevice {
  std::string_view name;
  double half, tf32, float32;
};
constexpr KnownDevice kDevices[] = {
    {"H200 NVL", 835.5, 417.7, 60},  {"GB200", 2500, 1250, 80},      {"B200", 2250, 1125, 75},
    {"H200", 989.4, 494.7, 66.9},    {"H100 NVL", 835.5, 417.7, 60}, {"H100 PCIe", 756, 378, 51},
    {"H100", 989.4, 494.7, 66.9},    {"H800", 989.4, 494.7, 66.9},   {"A100", 312, 156, 19.5},
    {"A800", 312, 156, 19.5},        {"A40", 149.7, 74.8, 37.4},     {"A30", 165, 82, 10.3},
    {"A10", 125, 62.5, 31.2},        {"L40S", 362, 183, 91.6},       {"L40", 181, 90.5, 90.5},
    {"L4", 121, 60, 30.3},           {"V100", 125, 15.7, 15.7},      {"T4", 65, 8.1, 8.1},
    {"RTX 4090", 165.2, 82.6, 82.6}, {"RTX 3090", 71, 35.6, 35.6},
};

/// As a word of its own: an A100-SXM4 is an A100, an RTX A4000 is no A40.
bool has_word(std::string_view text, std::string_view word) {
  const auto inside = [&](std::size_t at) { return at < text.size() && text[at] != ' ' && text[at] != '-'; };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if ((at == 0 || !inside(at - 1)) && !inside(at + word.size())) return true;
  return false;
}

}  // namespace

std::string device_name(c10::Device device) {
  if (!device.is_cuda()) return {};
  // LibTorch has loaded the driver; asking it needs no header of CUDA's.
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return {};
  const auto get = reinterpret_cast<int (*)(int*, int)>(::dlsym(driver, "cuDeviceGet"));
  const auto get_name = reinterpret_cast<int (*)(char*, int, int)>(::dlsym(driver, "cuDeviceGetName"));
  int handle = 0;
  char name[256] = "";
  const int index = device.has_index() ? device.index() : 0;
  const bool known =
      get != nullptr && get_name != nullptr && get(&handle, index) == 0 && get_name(name, sizeof name - 1, handle) == 0;
  ::dlclose(driver);
  return known ? name : "";
}

std::optional<Peak> known_peak(const std::string& name, at::ScalarType dtype) {
  for (const KnownDevice& device : kDevices) {
    if (!has_word(name, device.name)) continue;
    if (dtype == at::kHalf || dtype == at::kBFloat16) return Peak{device.half, name + ", 16 bits"};
    if (dtype == at::kFloat) return Peak{device.tf32, name + (device.tf32 > device.float32 ? ", TF32" : ", float32")};
    return std::nullopt;
  }
  return std::nullopt;
}
