#include "step_files.h"

#include <ATen/ops/abs.h>
#include <gantry/error.h>
#include <gantry/image.h>
#include <gantry/json.h>
#include <gantry/tensor_text.h>
#include <gantry/text.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "npy.h"

namespace probe_data {

namespace {

namespace fs = std::filesystem;
using gantry::cat;
using gantry::json_array;
using gantry::json_number;
using gantry::json_object;
using gantry::json_string;
using gantry::Probe;

constexpr std::size_t kHistogramBars = 40;

/// A name that any file system takes, unlike every one in `taken`.
std::string file_name(const std::string& name, std::set<std::string>& taken) {
  constexpr std::size_t kLongest = 100;
  std::string plain;
  for (const char c : name.substr(0, kLongest)) {
    const bool fits =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    plain += fits ? c : '_';
  }
  if (plain.empty() || plain.front() == '.' || plain.front() == '-') plain.insert(0, "_");
  std::string unique = plain;
  // index and meta are the folder's own.
  for (int i = 2; unique == "index" || unique == "meta" || !taken.insert(unique).second; ++i)
    unique = cat(plain, "-", i);
  return unique;
}

std::string three_digits(int64_t number) {
  std::string text = std::to_string(number);
  return std::string(3 - std::min<std::size_t>(3, text.size()), '0') + text;
}

void write_pictures(const std::string& folder, const std::string& stem, Item& item) {
  const at::Tensor bytes = gantry::to_bytes(item.probe->value);
  item.file = stem + ".png";
  if (bytes.dim() == 3 || bytes.size(0) == 1) {
    write_file(folder + "/" + item.file, gantry::encode_png(bytes.dim() == 3 ? bytes : bytes.select(0, 0)));
    return;
  }
  write_file(folder + "/" + item.file, gantry::encode_png(gantry::make_grid(bytes)));
  fs::create_directories(folder + "/" + stem);
  for (int64_t i = 0; i < bytes.size(0); ++i) {
    item.files.push_back(cat(stem, "/", three_digits(i), ".png"));
    write_file(folder + "/" + item.files.back(), gantry::encode_png(bytes.select(0, i)));
  }
}

std::string strings_json(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(json_string(text));
  return json_array(items);
}

std::string shape_json(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const int64_t size : tensor.sizes()) sizes.push_back(std::to_string(size));
  return json_array(sizes);
}

/// Two members: how often, and which share.
void add_distribution(const Item& item, std::vector<std::string>& members) {
  const ValueCounts& counts = *item.counts;
  const std::vector<ValueCounts::Bar> bars = counts.bars();
  const auto total = static_cast<double>(counts.total());
  std::vector<std::string> low, high, times, shares;
  for (const ValueCounts::Bar& bar : bars) {
    low.push_back(counts.exact() ? std::to_string(static_cast<int64_t>(bar.low)) : json_number(bar.low));
    high.push_back(json_number(bar.high));
    times.push_back(std::to_string(static_cast<int64_t>(bar.count)));
    shares.push_back(json_number(bar.count / total));
  }
  for (const bool normed : {false, true}) {
    const std::string name = json_string(item.probe->name + (normed ? "_norm_distribute" : "_distribute"));
    const char* kind = normed ? "shares" : "counts";
    const std::string values = json_array(normed ? shares : times);
    const std::string left_out = std::to_string(counts.not_finite());
    members.push_back(counts.exact() ? json_object({{"name", name},
                                                    {"kind", json_string("distribution")},
                                                    {"values", json_array(low)},
                                                    {kind, values},
                                                    {"not_finite", left_out}})
                                     : json_object({{"name", name},
                                                    {"kind", json_string("distribution")},
                                                    {"from", json_array(low)},
                                                    {"to", json_array(high)},
                                                    {kind, values},
                                                    {"not_finite", left_out}}));
  }
}

std::string probe_json(const Item& item) {
  const Probe& probe = *item.probe;
  const std::string name = json_string(probe.name);
  switch (probe.kind) {
    case Probe::Kind::image:
      return json_object({{"name", name},
                          {"kind", json_string("image")},
                          {"dtype", json_string(gantry::dtype_text(probe.value.scalar_type()))},
                          {"shape", shape_json(probe.value)},
                          {"file", json_string(item.file)},
                          {"files", strings_json(item.files)},
                          {"labels", strings_json(probe.labels)}});
    case Probe::Kind::tensor: {
      const TensorSummary summary = summary_of(probe.value);
      return json_object({{"name", name},
                          {"kind", json_string("tensor")},
                          {"dtype", json_string(gantry::dtype_text(probe.value.scalar_type()))},
                          {"shape", shape_json(probe.value)},
                          {"file", json_string(item.file)},
                          {"min", summary.finite > 0 ? json_number(summary.smallest) : "null"},
                          {"mean", summary.finite > 0 ? json_number(summary.mean) : "null"},
                          {"max", summary.finite > 0 ? json_number(summary.largest) : "null"},
                          {"not_finite", std::to_string(summary.not_finite)}});
    }
    case Probe::Kind::number:
      return json_object({{"name", name}, {"kind", json_string("number")}, {"value", json_number(probe.number)}});
    default:
      return json_object({{"name", name},
                          {"kind", json_string("text")},
                          {"text", json_string(probe.labels.empty() ? "" : probe.labels.front())}});
  }
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw gantry::Error(cat("cannot write ", path, ": ", std::strerror(errno != 0 ? errno : EIO)));
}

std::vector<Item> write_files(const std::string& folder, const std::vector<Probe>& probes, const Counts& counts,
                              const std::string& prefix) {
  std::vector<Item> items;
  std::set<std::string> taken;
  for (const Probe& probe : probes) {
    Item item;
    item.probe = &probe;
    const std::string stem = file_name(prefix + probe.name, taken);
    if (probe.kind == Probe::Kind::image) {
      write_pictures(folder, stem, item);
    } else if (probe.kind == Probe::Kind::tensor) {
      item.file = stem + ".npy";
      write_file(folder + "/" + item.file, encode_npy(probe.value));
    } else if (probe.kind == Probe::Kind::distribution) {
      item.counts = &counts.at(probe.name);
    }
    items.push_back(std::move(item));
  }
  return items;
}

std::string meta_json(const Step& step, const std::vector<Item>& items) {
  std::vector<std::string> probes;
  for (const Item& item : items) {
    if (item.counts != nullptr)
      add_distribution(item, probes);
    else
      probes.push_back(probe_json(item));
  }
  std::string lines;  // one probe a line, for people and for diff
  for (const std::string& probe : probes) lines += (lines.empty() ? "\n    " : ",\n    ") + probe;
  return cat("{\n  \"mode\": ", json_string(step.mode), ",\n  \"epoch\": ", step.epoch,
             ",\n  \"iteration\": ", step.iteration, ",\n  \"probes\": [", lines, "\n  ]\n}\n");
}

TensorSummary summary_of(const at::Tensor& tensor) {
  TensorSummary summary;
  const at::Tensor numbers = (tensor.is_complex() ? tensor.abs() : tensor).to(at::kDouble).contiguous();
  const auto* value = numbers.const_data_ptr<double>();
  double sum = 0;
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (!std::isfinite(value[i])) {
      ++summary.not_finite;
      continue;
    }
    const bool first = summary.finite++ == 0;
    summary.smallest = first ? value[i] : std::min(summary.smallest, value[i]);
    summary.largest = first ? value[i] : std::max(summary.largest, value[i]);
    sum += value[i];
  }
  if (summary.finite == 0) return summary;
  summary.mean = sum / static_cast<double>(summary.finite);
  const double range = summary.largest - summary.smallest;
  if (!(range > 0) || !std::isfinite(range)) return summary;
  const double width = range / static_cast<double>(kHistogramBars);
  for (std::size_t b = 0; b < kHistogramBars; ++b) {
    const double low = summary.smallest + static_cast<double>(b) * width;
    summary.histogram.push_back({low, low + width, 0});
  }
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (!std::isfinite(value[i])) continue;
    const auto b = static_cast<std::size_t>((value[i] - summary.smallest) / width);
    summary.histogram[std::min(b, kHistogramBars - 1)].count += 1;
  }
  return summary;
}

}  // namespace probe_data
