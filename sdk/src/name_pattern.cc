#include "gantry/name_pattern.h"

#include <algorithm>
#include <regex>

#include "gantry/text.h"

namespace gantry {
namespace {

const char* defect(const std::regex_error& error) {
  switch (error.code()) {
    case std::regex_constants::error_collate:
      return "it has a collating element that is unknown";
    case std::regex_constants::error_ctype:
      return "it has a character class that is unknown";
    case std::regex_constants::error_escape:
      return "it has a '\\' before something that needs none, or at its end";
    case std::regex_constants::error_backref:
      return "it refers back to a group that it does not have";
    case std::regex_constants::error_brack:
      return "a '[' is not closed";
    case std::regex_constants::error_paren:  // also where the library should say badrepeat
      return "its '(' and ')' do not match, or a '*', '+' or '?' has nothing before it to repeat";
    case std::regex_constants::error_brace:
      return "its '{' and '}' do not match";
    case std::regex_constants::error_badbrace:
      return "what stands between '{' and '}' is no number of repetitions";
    case std::regex_constants::error_range:
      return "a range between '[' and ']' ends before it begins";
    case std::regex_constants::error_badrepeat:
      return "a '*', '+', '?' or '{' has nothing before it to repeat (write \\* for the character itself)";
    default:
      return "it is too complicated";
  }
}

}  // namespace

struct NamePattern::Expression {
  std::regex regex;
};

NamePattern::NamePattern(const Config& config, std::string_view key, const std::string& text) : text_(text) {
  try {
    expression_ = std::make_shared<Expression>(Expression{std::regex(text, std::regex::ECMAScript)});
  } catch (const std::regex_error& error) {
    throw ConfigError(config.where(key), cat(key, ": '", text, "' is no regular expression: ", defect(error)));
  }
}

bool NamePattern::found_in(const std::string& name) const { return std::regex_search(name, expression_->regex); }

std::string NamePattern::replaced(const std::string& name, const std::string& by) const {
  return std::regex_replace(name, expression_->regex, by);
}

std::vector<NamePattern> name_patterns(const Config& config, std::string_view key) {
  std::vector<NamePattern> patterns;
  for (const std::string& text : config.get<std::vector<std::string>>(key)) patterns.emplace_back(config, key, text);
  return patterns;
}

bool any_found_in(const std::vector<NamePattern>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const NamePattern& pattern) { return pattern.found_in(name); });
}

}  // namespace gantry
