#pragma once

#include <stdexcept>
#include <string>

#include "gantry/export.h"

namespace gantry {

/// A place in a configuration. `line` 0 means that the place is no line of a file: `file` is then a
/// phrase such as "command line".
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;

  /// "configs/a.yaml:14", or the phrase alone.
  GANTRY_API std::string str() const;
};

/// The base of everything that Gantry throws on purpose. `what()` is complete sentences for a user:
/// what happened, where, both values, what to do. No C++ type names.
class GANTRY_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  ~Error() override;
};

/// The configuration asks for something impossible. Ends the program with exit code 2, wherever it is
/// thrown: a component's constructor throws it for combinations that declared parameters cannot express.
/// Prefer `config.error("KEY", "...")`, which fills in the place.
class GANTRY_API ConfigError : public Error {
 public:
  ConfigError(SourceLocation where, const std::string& message);
  ~ConfigError() override;

  /// `what()` begins with the place; this is the text alone.
  const std::string& message() const { return message_; }
  const SourceLocation& where() const { return where_; }

 private:
  SourceLocation where_;
  std::string message_;
};

/// Something that plugin code threw, with who threw it and when. Made by the solver and by
/// Context::build; a plugin has no need to throw it. Ends the program with exit code 1.
class GANTRY_API ComponentError : public Error {
 public:
  struct Origin {
    std::string component;     ///< "hook acme/GradNorm"
    std::string plugin;        ///< "acme-gradnorm 1.0.0 (/path/acme.so)"
    std::string point;         ///< "after_iter", "constructor", "get_batch", ...
    std::string mode;          ///< "train", "eval", "test", or empty outside of the loops
    long long iteration = -1;  ///< total_iter of that mode; -1 outside of the loops
    SourceLocation where;      ///< the component's place in the configuration
  };
  ComponentError(Origin origin, const std::string& cause);
  ~ComponentError() override;

  const Origin& origin() const { return origin_; }
  /// The original message alone.
  const std::string& cause() const { return cause_; }

 private:
  Origin origin_;
  std::string cause_;
};

/// The message of the exception being handled, for any type of exception: std, LibTorch's without its
/// stack trace, or one that is no std::exception. Call inside a catch block.
GANTRY_API std::string current_exception_message();

}  // namespace gantry
