#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <limits>
#include <string>

#include "gantry/checkpoint.h"

/// A small state with a leaf of each kind, and an account of it.

inline gantry::State sample_state() {
  gantry::State state;
  state.set("model/fc.weight", at::arange(12, at::kFloat).reshape({3, 4}));
  state.set("model/fc.bias", at::ones({3}, at::kBFloat16));
  state.set("model/norm.count", at::full({}, 7, at::kLong));
  state.set("optimizer/fc.bias/exp_avg", at::full({3}, 0.25, at::kFloat));
  state.set_int("optimizer/fc.weight/step", 157);
  state.set_int("counters/step", 157);
  state.set_double("counters/best", 1.0 / 3.0);
  state.set_text("rng/cpu", "some bytes");
  state.set_int("model", 1);
  state.set_int("modeling/x", 2);
  state.set_int("optimizer/", 3);
  return state;
}

inline gantry::CheckpointInfo sample_info() {
  gantry::CheckpointInfo info;
  info.iteration = 469;
  info.epoch = 1;
  info.step = 157;
  info.phase = "epoch_done";
  info.why = "the end of an \"epoch\"\n2nd line";
  info.machine = {{"torch", "2.11.0"}, {"cpu", "a CPU"}, {"threads", "2"}};
  info.settings = {{"SOLVER.MAX_EPOCHS", "6"}, {"SOLVER.MODEL.NAME", "Convnet\\\"x\""}};
  info.metrics = {{"eval/acc@1", 1.0 / 3.0},
                  {"eval/loss", 2.0},
                  {"eval/tiny", 5e-324},
                  {"eval/nan", std::nan("")},
                  {"eval/inf", std::numeric_limits<double>::infinity()}};
  return info;
}
