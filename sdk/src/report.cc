#include "gantry/json.h"
#include "gantry/session.h"
#include "gantry/text.h"

namespace gantry {

namespace {

std::string numbers_object(const std::vector<std::pair<std::string, double>>& values) {
  std::vector<std::string> members;
  for (const auto& [name, value] : values) members.push_back(cat(json_string(name), ": ", json_number(value)));
  return "{" + join(members, ", ") + "}";
}

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : json_string(text); }

const char* status_text(RunStatus status) {
  switch (status) {
    case RunStatus::done:
      return "done";
    case RunStatus::interrupted:
      return "interrupted";
    case RunStatus::failed:
      break;
  }
  return "failed";
}

}  // namespace

Interrupts::~Interrupts() = default;

std::string RunReport::json() const {
  std::vector<std::string> modes;
  for (const auto& [mode, values] : metrics) modes.push_back(cat(json_string(mode), ": ", numbers_object(values)));
  const std::string problem = error.empty()
                                  ? "null"
                                  : json_object({{"what", json_string(error)},
                                                 {"file", text_or_null(error_file)},
                                                 {"line", error_line > 0 ? cat(error_line) : "null"},
                                                 {"plugin", text_or_null(error_plugin)},
                                                 {"point", text_or_null(error_point)},
                                                 {"iteration", error_iteration >= 0 ? cat(error_iteration) : "null"}});
  return json_object({{"status", json_string(status_text(status))},
                      {"epoch", cat(epoch)},
                      {"iteration", cat(iteration)},
                      {"seconds", json_number(seconds)},
                      {"samples_per_s", json_number(samples_per_s)},
                      {"metrics", cat("{", join(modes, ", "), "}")},
                      {"best", numbers_object(best)},
                      {"checkpoint", text_or_null(checkpoint)},
                      {"work_dir", text_or_null(work_dir)},
                      {"error", problem}});
}

}  // namespace gantry
