#include <cmath>

#include "gantry/session.h"
#include "gantry/text.h"

namespace gantry {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          const char* digits = "0123456789abcdef";
          out += cat("\\u00", digits[(c >> 4) & 0xf], digits[c & 0xf]);
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

/// JSON has no NaN and no infinity.
std::string number(double value) { return std::isfinite(value) ? number_text(value) : "null"; }

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : quoted(text); }

const char* status_text(RunStatus status) {
  switch (status) {
    case RunStatus::done: return "done";
    case RunStatus::interrupted: return "interrupted";
    case RunStatus::failed: break;
  }
  return "failed";
}

}  // namespace

std::string RunReport::json() const {
  std::string out = cat("{\"status\": \"", status_text(status), "\", \"epoch\": ", epoch, ", \"iteration\": ", iteration,
                        ", \"seconds\": ", number(seconds), ", \"samples_per_s\": ", number(samples_per_s),
                        ", \"metrics\": {");
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    out += cat(i == 0 ? "" : ", ", quoted(metrics[i].first), ": {");
    const auto& values = metrics[i].second;
    for (std::size_t j = 0; j < values.size(); ++j)
      out += cat(j == 0 ? "" : ", ", quoted(values[j].first), ": ", number(values[j].second));
    out += "}";
  }
  out += cat("}, \"best\": {}, \"checkpoint\": null, \"work_dir\": ", text_or_null(work_dir), ", \"error\": ");
  if (error.empty()) {
    out += "null";
  } else {
    out += cat("{\"what\": ", quoted(error), ", \"file\": ", text_or_null(error_file), ", \"line\": ");
    out += error_line > 0 ? std::to_string(error_line) : "null";
    out += cat(", \"plugin\": ", text_or_null(error_plugin), ", \"point\": ", text_or_null(error_point), ", \"iteration\": ");
    out += error_iteration >= 0 ? std::to_string(error_iteration) : "null";
    out += "}";
  }
  return out + "}";
}

}  // namespace gantry
