#include "gantry/error.h"

#include <utility>

#include "gantry/text.h"

namespace gantry {
namespace {

std::string with_place(const SourceLocation& where, const std::string& message) {
  const std::string place = where.str();
  return place.empty() ? message : cat(place, ": ", message);
}

std::string sentence(const ComponentError::Origin& origin, const std::string& cause) {
  std::string text = origin.component;
  if (!origin.plugin.empty()) text += cat(" of plugin ", origin.plugin);
  text += " failed";
  if (!origin.point.empty()) text += cat(" in ", origin.point);
  if (origin.iteration >= 0) {
    text += cat(" at ", origin.mode, origin.mode.empty() ? "" : " ", "iteration ", origin.iteration);
  } else if (!origin.mode.empty()) {
    text += cat(" (", origin.mode, ")");
  }
  return with_place(origin.where, cat(text, ": ", cause));
}

}  // namespace

std::string SourceLocation::str() const { return line > 0 ? cat(file, ":", line) : file; }

Error::Error(const std::string& message) : std::runtime_error(message) {}
Error::~Error() = default;

ConfigError::ConfigError(SourceLocation where, const std::string& message)
    : Error(with_place(where, message)), where_(std::move(where)), message_(message) {}
ConfigError::~ConfigError() = default;

ComponentError::ComponentError(Origin origin, const std::string& cause)
    : Error(sentence(origin, cause)), origin_(std::move(origin)), cause_(cause) {}
ComponentError::~ComponentError() = default;

}  // namespace gantry
