#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gantry/catalogue.h"
#include "gantry/config.h"

/// What a checkpoint's account says of the run that saved it, for the one that goes on from it to compare.
namespace gantry {

struct Services;
using Facts = std::vector<std::pair<std::string, std::string>>;

struct Setting {
  std::string key, value;  ///< "SOLVER.MAX_EPOCHS", "3"
  SourceLocation where;
};
using Settings = std::vector<Setting>;

/// On what bit-for-bit continuation depends beside the configuration.
Facts machine_facts(const Services& services);
/// Every setting that the result depends on: what is declared without effect, and neutral components, are left out.
Settings result_settings(const Config& resolved, Catalogue& catalogue);
Facts facts_of(const Settings& settings);
/// "torch 2.10.0 there, 2.11.0 here", for each that differs or is on one side alone.
std::vector<std::string> fact_differences(const Facts& there, const Facts& here);

}  // namespace gantry
