#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "gantry/log.h"

namespace gantry::host {

/// Throws gantry::Error with `message` and where to find help. `command` may be empty.
[[noreturn]] void fail_usage(const std::string& command, const std::string& message);

/// The options and operands of one command.
class Arguments final {
 public:
  /// `command`: "run"; `operands`: "CONFIG [KEY=VALUE...]", shown in the help.
  Arguments(std::string command, std::string operands, std::string about);

  Arguments& flag(const char* name, const char* help);
  Arguments& plugin_dirs();
  Arguments& log_level();

  /// Takes between `least` and `most` operands. Returns false when --help was asked for, and prints it.
  /// Throws gantry::Error.
  bool parse(const std::vector<std::string>& arguments, std::size_t least, std::size_t most);

  bool has(const char* name) const { return values_.count(name) > 0; }
  const std::vector<std::string>& operands() const { return operands_; }
  std::vector<std::string> plugin_dir_values() const;
  LogLevel log_level_value() const;

 private:
  std::string command_, shown_operands_, about_;
  boost::program_options::options_description options_{"Options"};
  boost::program_options::variables_map values_;
  std::vector<std::string> operands_;
};

}  // namespace gantry::host
