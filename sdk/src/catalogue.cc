#include "gantry/catalogue.h"

#include "gantry/text.h"

namespace gantry {

Catalogue::~Catalogue() = default;

std::string ComponentInfo::origin() const {
  std::string text = plugin;
  if (!version.empty()) text += cat(" ", version);
  if (!file.empty()) text += cat(" (", file, ")");
  return text;
}

}  // namespace gantry
