#include "device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <cstdio>

std::string device_memory_text(c10::Device device) {
  using Stats = c10::CachingDeviceAllocator::DeviceStats;
  const Stats stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.has_index() ? device.index() : 0);
  const auto& bytes = stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  constexpr double kGib = 1024.0 * 1024 * 1024;
  char text[64];
  std::snprintf(text, sizeof text, "mem %.1f/%.1f GiB", static_cast<double>(bytes.current) / kGib,
                static_cast<double>(bytes.peak) / kGib);
  return text;
}
