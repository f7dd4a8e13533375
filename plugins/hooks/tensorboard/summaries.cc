#include "summaries.h"

#include <gantry/image.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace {

// tensorflow.DataType
constexpr int64_t kFloat = 1, kString = 7;
// tensorboard.hparams.DataType
constexpr int64_t kTypeString = 1, kTypeBool = 2, kTypeFloat64 = 3;

Message tensor_shape(int64_t size) { return Message().message(2, Message().integer(1, size)); }

Message plugin_metadata(std::string_view plugin, std::string_view content) {
  return Message().message(1, Message().text(1, plugin).bytes(2, content));
}

/// A value that is all metadata.
Message hparams_summary(std::string_view tag, const Message& content) {
  return Message()
      .text(1, tag)
      .message(8, Message().integer(1, kFloat).message(2, tensor_shape(0)))
      .message(9, plugin_metadata("hparams", content.encoded()));
}

bool is_number(const std::string& text, double& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}
bool is_bool(const std::string& text) { return text == "true" || text == "false"; }

int64_t type_of(const std::string& text) {
  double ignored = 0;
  return is_bool(text) ? kTypeBool : is_number(text, ignored) ? kTypeFloat64 : kTypeString;
}

/// google.protobuf.Value
Message json_value(const std::string& text) {
  double number = 0;
  if (is_bool(text)) return Message().integer(4, text == "true");
  if (is_number(text, number)) return Message().number(2, number);
  return Message().text(3, text);
}

}  // namespace

Message scalar_summary(std::string_view tag, double value) {
  return Message().text(1, tag).float32(2, static_cast<float>(value));
}

Message image_summary(std::string_view tag, const at::Tensor& images) {
  const at::Tensor picture = images.dim() == 4 && images.size(0) == 1 ? images.select(0, 0)
                             : images.dim() == 4                      ? gantry::make_grid(images)
                                                                      : images;
  const Message image = Message()
                            .integer(1, picture.size(1))
                            .integer(2, picture.size(2))
                            .integer(3, picture.size(0))
                            .bytes(4, gantry::encode_png(picture));
  return Message().text(1, tag).message(4, image);
}

Message histogram_summary(std::string_view tag, const at::Tensor& values) {
  constexpr int64_t kBins = 64;
  const at::Tensor flat = values.to(at::kDouble).contiguous();
  const double* begin = flat.const_data_ptr<double>();
  std::vector<double> finite;
  std::copy_if(begin, begin + flat.numel(), std::back_inserter(finite), [](double x) { return std::isfinite(x); });
  Message histogram;
  if (!finite.empty()) {
    const auto [least, most] = std::minmax_element(finite.begin(), finite.end());
    const double min = *least, max = *most;
    const bool integers = !values.is_floating_point() && max - min < kBins;
    const auto bins = integers ? static_cast<int64_t>(max - min) + 1 : max > min ? kBins : 1;
    const double low = integers ? min - 0.5 : min;
    const double width = integers ? 1 : (max - min) / static_cast<double>(bins);
    std::vector<double> counts(static_cast<std::size_t>(bins));
    double sum = 0, squares = 0;
    for (const double x : finite) {
      const auto bin = width > 0 ? static_cast<int64_t>((x - low) / width) : 0;
      ++counts[static_cast<std::size_t>(std::clamp<int64_t>(bin, 0, bins - 1))];
      sum += x;
      squares += x * x;
    }
    histogram.number(1, low).number(2, integers ? max + 0.5 : max);
    histogram.number(3, static_cast<double>(finite.size())).number(4, sum).number(5, squares);
    for (int64_t i = 1; i <= bins; ++i) histogram.number(6, low + width * static_cast<double>(i));
    for (const double count : counts) histogram.number(7, count);
  }
  return Message().text(1, tag).message(5, histogram);
}

Message text_summary(std::string_view tag, std::string_view markdown) {
  return Message()
      .text(1, tag)
      .message(8, Message().integer(1, kString).message(2, tensor_shape(1)).text(8, markdown))
      .message(9, plugin_metadata("text", ""));
}

Message session_start_summary(const Settings& settings, double seconds_since_1970) {
  Message start;
  for (const auto& [name, value] : settings) start.message(1, Message().text(1, name).message(2, json_value(value)));
  start.number(5, seconds_since_1970);
  return hparams_summary("_hparams_/session_start_info", Message().message(3, start));
}

Message session_end_summary(bool success, double seconds_since_1970) {
  const Message end = Message().integer(1, success ? 1 : 2).number(2, seconds_since_1970);
  return hparams_summary("_hparams_/session_end_info", Message().message(4, end));
}

Message experiment_summary(const Settings& settings, const std::vector<std::pair<std::string, gantry::Mode>>& results,
                           double seconds_since_1970) {
  Message experiment;
  experiment.number(3, seconds_since_1970);
  for (const auto& [name, value] : settings) experiment.message(4, Message().text(1, name).integer(4, type_of(value)));
  for (const auto& [tag, mode] : results)
    experiment.message(5, Message().message(1, Message().text(2, tag)).integer(5, mode == gantry::Mode::train ? 1 : 2));
  return hparams_summary("_hparams_/experiment", Message().message(2, experiment));
}
