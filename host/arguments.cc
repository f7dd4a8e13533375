#include "host/arguments.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <utility>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry::host {
namespace po = boost::program_options;

void fail_usage(const std::string& command, const std::string& message) {
  throw Error(cat(message, "\ntry: gantry ", command, command.empty() ? "" : " ", "--help"));
}

Arguments::Arguments(std::string command, std::string operands, std::string about)
    : command_(std::move(command)), shown_operands_(std::move(operands)), about_(std::move(about)) {
  options_.add_options()("help,h", "show this text");
}

Arguments& Arguments::flag(const char* name, const char* help) {
  options_.add_options()(name, help);
  return *this;
}

Arguments& Arguments::plugin_dirs() {
  options_.add_options()("plugin-dir", po::value<std::vector<std::string>>()->value_name("DIR"),
                         "look for plugins here first (may be repeated)");
  return *this;
}

Arguments& Arguments::log_level() {
  options_.add_options()("log-level", po::value<std::string>()->value_name("LEVEL")->default_value("info"),
                         "least level that is logged: debug, info, warn or error");
  return *this;
}

bool Arguments::parse(const std::vector<std::string>& arguments, std::size_t least, std::size_t most) {
  po::options_description all;
  all.add(options_).add_options()("operand", po::value<std::vector<std::string>>(&operands_));
  po::positional_options_description positional;
  positional.add("operand", -1);
  try {
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(all).positional(positional).style(style).run(), values_);
    po::notify(values_);
  } catch (const po::error& error) {
    fail_usage(command_, error.what());
  }
  if (has("help")) {
    std::cout << "usage: gantry " << command_ << (shown_operands_.empty() ? "" : " ") << shown_operands_
              << " [options]\n\n"
              << about_ << "\n\n"
              << options_;
    return false;
  }
  if (operands_.size() < least)
    fail_usage(command_, cat("gantry ", command_, " ", shown_operands_, ": too few arguments"));
  if (operands_.size() > most) fail_usage(command_, cat("unexpected argument '", operands_[most], "'"));
  return true;
}

std::vector<std::string> Arguments::plugin_dir_values() const {
  return has("plugin-dir") ? values_["plugin-dir"].as<std::vector<std::string>>() : std::vector<std::string>{};
}

LogLevel Arguments::log_level_value() const {
  const std::string& given = values_["log-level"].as<std::string>();
  static constexpr const char* levels[] = {"debug", "info", "warn", "error"};
  const auto found = std::find(std::begin(levels), std::end(levels), given);
  if (found == std::end(levels))
    fail_usage(command_, cat("--log-level '", given, "': expected debug, info, warn or error"));
  return static_cast<LogLevel>(found - std::begin(levels));
}

}  // namespace gantry::host
