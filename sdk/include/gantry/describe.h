#pragma once

#include <string>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/export.h"

/// Texts about components, from what they declare. The host prints them; a plugin has no need of this header.
namespace gantry {

/// What a component does, its parameters, and YAML to start from: `gantry describe`.
GANTRY_API std::string component_text(const ComponentInfo& component);
/// The same as a JSON object.
GANTRY_API std::string component_json(const ComponentInfo& component);

/// A line for each component under a line for each kind: `gantry list`. Those of a kind stand together.
GANTRY_API std::string components_text(const std::vector<ComponentInfo>& components);
/// A JSON array.
GANTRY_API std::string components_json(const std::vector<ComponentInfo>& components);

}  // namespace gantry
