#pragma once

#include <ATen/core/Tensor.h>
#include <gantry/fields.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto.h"

/// What TensorBoard shows, as messages of type tensorflow.Summary.Value. The numbers of the fields are those of
/// tensorflow/core/framework/summary.proto, histogram.proto and tensor.proto, and of plugin_data.proto and api.proto of
/// TensorBoard's hparams plugin.

Message scalar_summary(std::string_view tag, double value);
/// Pictures [C, H, W], or [N, C, H, W] in a grid.
Message image_summary(std::string_view tag, const at::Tensor& images);
/// Counts in bins of equal width, or of each integer; without those that are not finite.
Message histogram_summary(std::string_view tag, const at::Tensor& values);
Message text_summary(std::string_view tag, std::string_view markdown);

/// The HPARAMS tab: what a run was started with; how it ended; and, of it all, what is a setting and what a result.
using Settings = std::vector<std::pair<std::string, std::string>>;
Message session_start_summary(const Settings& settings, double seconds_since_1970);
Message session_end_summary(bool success, double seconds_since_1970);
/// `results`: tags of scalars, each with the mode that it is of.
Message experiment_summary(const Settings& settings, const std::vector<std::pair<std::string, gantry::Mode>>& results,
                           double seconds_since_1970);
