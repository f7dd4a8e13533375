#include "loss_history.h"

#include <gantry/json.h>
#include <gantry/text.h>

#include <algorithm>

namespace val_loss {

namespace {

using gantry::cat;

std::string entry_path(std::size_t index) { return cat("entry/", index); }

std::string members(int64_t iteration, int64_t epoch) {
  return cat("{\"iteration\": ", iteration, ", \"epoch\": ", epoch);
}

std::string loss_members(double loss, int64_t samples) {
  return cat("\"loss\": ", gantry::json_number(loss), ", \"samples\": ", samples, "}");
}

}  // namespace

std::string LossHistory::json() const {
  std::string summary, detail;
  for (const Entry& entry : entries_) {
    const std::string beginning = members(entry.iteration, entry.epoch);
    summary += cat(summary.empty() ? "\n    " : ",\n    ", beginning, ", ", loss_members(entry.loss, entry.samples));
    for (const PartLoss& part : entry.parts) {
      detail += cat(detail.empty() ? "\n    " : ",\n    ", beginning, ", \"field\": ", gantry::json_string(part.field),
                    ", \"value\": ", gantry::json_string(part.value), ", ", loss_members(part.loss, part.samples));
    }
  }
  return cat("{\n  \"summary\": [", summary, "\n  ],\n  \"detail\": [", detail, "\n  ]\n}\n");
}

std::vector<Curve> LossHistory::curves() const {
  std::vector<Curve> curves = {{"all", {}}};
  for (const Entry& entry : entries_) {
    const auto x = static_cast<double>(entry.iteration);
    curves.front().points.emplace_back(x, entry.loss);
    for (const PartLoss& part : entry.parts) {
      const std::string name = part.field + ": " + part.value;
      auto curve = std::find_if(curves.begin() + 1, curves.end(), [&](const Curve& c) { return c.name == name; });
      if (curve == curves.end()) curve = curves.insert(curves.end(), {name, {}});
      curve->points.emplace_back(x, part.loss);
    }
  }
  return curves;
}

gantry::State LossHistory::state() const {
  gantry::State state;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::string path = entry_path(i);
    state.set_int(path + "/iteration", entry.iteration);
    state.set_int(path + "/epoch", entry.epoch);
    state.set_double(path + "/loss", entry.loss);
    state.set_int(path + "/samples", entry.samples);
    for (std::size_t p = 0; p < entry.parts.size(); ++p) {
      const std::string part = cat(path, "/part/", p);
      state.set_text(part + "/field", entry.parts[p].field);
      state.set_text(part + "/value", entry.parts[p].value);
      state.set_double(part + "/loss", entry.parts[p].loss);
      state.set_int(part + "/samples", entry.parts[p].samples);
    }
  }
  return state;
}

LossHistory LossHistory::from(const gantry::State& state) {
  LossHistory history;
  for (std::size_t i = 0; state.has(entry_path(i) + "/iteration"); ++i) {
    const std::string path = entry_path(i);
    Entry entry{state.integer(path + "/iteration"),
                state.integer(path + "/epoch"),
                state.number(path + "/loss"),
                state.integer(path + "/samples"),
                {}};
    for (std::size_t p = 0; state.has(cat(path, "/part/", p, "/field")); ++p) {
      const std::string part = cat(path, "/part/", p);
      entry.parts.push_back({state.text(part + "/field"), state.text(part + "/value"), state.number(part + "/loss"),
                             state.integer(part + "/samples")});
    }
    history.add(std::move(entry));
  }
  return history;
}

}  // namespace val_loss
