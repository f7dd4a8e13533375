#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gantry/config.h"
#include "gantry/export.h"
#include "gantry/parameters.h"

namespace gantry {

class Context;

/// A component that can be named in a configuration, from a loaded plugin.
struct ComponentInfo {
  std::string kind, name, summary;
  std::string plugin, version, file;  ///< who provides it
  Parameters parameters;
  /// Returns a new object of the kind's interface class (as a pointer to that interface), owned by the
  /// caller. May throw anything.
  void* (*create)(const Config& config, Context& context) = nullptr;

  /// "acme-gradnorm 1.0.0 (/path/acme.so)"
  GANTRY_API std::string origin() const;
};

/// Finds components by name; the host implements it and loads plugins as they are asked for.
/// Main thread only. What `find` returns lives as long as the catalogue.
class GANTRY_API Catalogue {
 public:
  virtual ~Catalogue();
  /// `pinned`: the PLUGIN key, an absolute path, or empty. nullptr when no plugin provides the name.
  /// Throws ConfigError (its place being `asked_by`) when one does but cannot be used.
  virtual const ComponentInfo* find(const std::string& kind, const std::string& name, const std::string& pinned,
                                    const SourceLocation& asked_by) = 0;
  /// Every name of a kind, sorted.
  virtual std::vector<std::string> names(const std::string& kind) const = 0;
  /// More lines for an unknown name's message: other kinds that have it, files that were skipped.
  virtual std::string hint(const std::string& kind, const std::string& name) const = 0;
};

}  // namespace gantry
