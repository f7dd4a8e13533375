#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/config.h"
#include "gantry/export.h"

namespace gantry {

/// A pattern for the names of parameters: a regular expression (ECMAScript) that is looked for anywhere in the name. So
/// a plain part of a name is one ("backbone.layer1"), "^head\." the beginning, "bias$" the end. Immutable; copies
/// share.
class GANTRY_API NamePattern final {
 public:
  /// Throws ConfigError at this key of `config` for a text that is no regular expression.
  NamePattern(const Config& config, std::string_view key, const std::string& text);
  const std::string& text() const { return text_; }
  bool found_in(const std::string& name) const;
  /// `name` with every place that matches replaced; `$1` is the first group.
  std::string replaced(const std::string& name, const std::string& by) const;

 private:
  struct Expression;
  std::string text_;
  std::shared_ptr<const Expression> expression_;
};

/// One for each text of a list that was declared as std::vector<std::string>.
GANTRY_API std::vector<NamePattern> name_patterns(const Config& config, std::string_view key);
GANTRY_API bool any_found_in(const std::vector<NamePattern>& patterns, const std::string& name);

}  // namespace gantry
