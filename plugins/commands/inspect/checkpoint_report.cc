#include "checkpoint_report.h"

#include <gantry/error.h>
#include <gantry/json.h>
#include <gantry/safetensors.h>
#include <gantry/text.h>

#include <utility>

#include "tensors_report.h"
#include "text_forms.h"

namespace {

using gantry::CheckpointInfo;

CheckpointReport::File examine(const CheckpointInfo& info, const CheckpointInfo::File& expected) {
  CheckpointReport::File file;
  file.expected = expected;
  CheckpointInfo alone = info;
  alone.files = {expected};
  try {
    gantry::verify_checkpoint(alone);
    const auto tensors = gantry::SafetensorsFile::open(info.path + "/" + expected.name);
    file.tensors = static_cast<int64_t>(tensors.entries().size());
    file.numbers = numbers_in(tensors);
  } catch (const gantry::Error& error) {
    file.problem = error.what();
  }
  return file;
}

std::string section(const char* title, const std::vector<std::pair<std::string, std::string>>& facts) {
  std::vector<Row> rows;
  for (const auto& [name, value] : facts) rows.push_back({printable(name), printable(value)});
  return rows.empty() ? std::string() : gantry::cat(title, "\n", columns(rows, {false, false}));
}

}  // namespace

CheckpointReport examine_checkpoint(const std::string& path) {
  CheckpointReport report;
  report.info = gantry::read_checkpoint_info(path);
  for (const CheckpointInfo::File& file : report.info.files) report.files.push_back(examine(report.info, file));
  return report;
}

bool CheckpointReport::whole() const {
  for (const File& file : files)
    if (!file.problem.empty()) return false;
  return true;
}

int64_t CheckpointReport::bytes() const {
  int64_t sum = 0;
  for (const File& file : files) sum += file.expected.size;
  return sum;
}

const CheckpointReport::File* CheckpointReport::model() const {
  for (const File& file : files)
    if (file.expected.name == "model.safetensors") return &file;
  return nullptr;
}

std::string CheckpointReport::text() const {
  std::string text = gantry::cat("checkpoint  ", info.path, "\n");
  text += gantry::cat("iteration   ", info.iteration, "\nepoch       ", info.epoch, "\nstep        ", info.step, "\n");
  text += gantry::cat("phase       ", printable(info.phase), "\nsaved       ", printable(info.saved), "\nwhy         ",
                      printable(info.why), "\n");
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [name, value] : info.metrics) values.emplace_back(name, gantry::short_number(value));
  text += section("metrics", values) + section("machine", info.machine) + section("settings", info.settings);

  std::vector<Row> rows{{"name", "bytes", "xxh3", "tensors", "state"}};
  std::string problems;
  for (const File& file : files) {
    const bool ok = file.problem.empty();
    rows.push_back({printable(file.expected.name), std::to_string(file.expected.size), printable(file.expected.xxh3),
                    ok ? std::to_string(file.tensors) : "?", ok ? "ok" : "DAMAGED"});
    if (!ok) problems += gantry::cat(file.problem, "\n");
  }
  text += "files\n" + columns(rows, {false, true, false, true, false});
  if (const File* file = model(); file != nullptr && file->problem.empty())
    text += gantry::cat("model       ", count(file->tensors, "tensor"), ", ", count(file->numbers, "number"),
                        " (parameters and buffers), ", gantry::bytes_text(file->expected.size), "\n");
  text += gantry::cat("total       ", gantry::bytes_text(bytes()), "\n");
  return text + problems;
}

std::string CheckpointReport::json() const {
  std::vector<std::pair<std::string, std::string>> metrics;
  for (const auto& [name, value] : info.metrics) metrics.emplace_back(name, gantry::json_number(value));
  std::vector<std::string> items;
  for (const File& file : files) {
    const bool ok = file.problem.empty();
    items.push_back(gantry::json_object({{"name", gantry::json_string(file.expected.name)},
                                         {"bytes", gantry::cat(file.expected.size)},
                                         {"xxh3", gantry::json_string(file.expected.xxh3)},
                                         {"tensors", ok ? gantry::cat(file.tensors) : "null"},
                                         {"numbers", ok ? gantry::cat(file.numbers) : "null"},
                                         {"problem", ok ? "null" : gantry::json_string(file.problem)}}));
  }
  return gantry::json_object({{"checkpoint", gantry::json_string(info.path)},
                              {"whole", whole() ? "true" : "false"},
                              {"iteration", gantry::cat(info.iteration)},
                              {"epoch", gantry::cat(info.epoch)},
                              {"step", gantry::cat(info.step)},
                              {"phase", gantry::json_string(info.phase)},
                              {"saved", gantry::json_string(info.saved)},
                              {"why", gantry::json_string(info.why)},
                              {"bytes", gantry::cat(bytes())},
                              {"metrics", json_members(metrics)},
                              {"machine", json_texts(info.machine)},
                              {"settings", json_texts(info.settings)},
                              {"files", gantry::json_array(items)}});
}
