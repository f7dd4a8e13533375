#include "gantry/pretrained.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "gantry/error.h"
#include "gantry/file_system.h"
#include "gantry/log.h"
#include "gantry/model.h"
#include "gantry/name_pattern.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"
#include "message.h"

namespace gantry {
namespace {

constexpr std::size_t kMostComparisons = 20'000;  // of names that may be misspelt: each costs microseconds
constexpr std::size_t kNamesInALine = 5;

/// What a file has under the name that NAME_MAP makes of its own.
struct Source {
  std::string name;  // in the file
  at::Tensor tensor;
};

struct Copy {
  at::Tensor to, from;
};

/// Everything that is to be known before anything is copied.
struct Plan {
  std::vector<Copy> copies;
  std::vector<std::string> problems;             // whatever STRICT says
  std::vector<std::string> missing, unexpected;  // names of the model; of the file, renamed
  int64_t ignored = 0;
};

std::string renamed_text(const std::string& renamed, const Source& source) {
  if (source.name == renamed) return cat("the file's ", quoted_for_message(renamed));
  return cat("the file's ", quoted_for_message(source.name), ", by NAME_MAP ", quoted_for_message(renamed), ",");
}

std::map<std::string, Source> sources(const WeightFiles& weights, const Config& config, Plan& plan) {
  std::vector<std::pair<NamePattern, std::string>> map;
  for (const Config& entry : config.get<std::vector<Config>>("NAME_MAP"))
    map.emplace_back(NamePattern(entry, "FROM", entry.get<std::string>("FROM")), entry.get<std::string>("TO"));
  const std::vector<NamePattern> ignore = name_patterns(config, "IGNORE_KEYS");
  std::map<std::string, Source> result;
  for (const std::string& name : weights.names()) {
    std::string renamed = name;
    for (const auto& [from, to] : map) renamed = from.replaced(renamed, to);
    if (any_found_in(ignore, renamed)) {
      ++plan.ignored;
      continue;
    }
    const auto [at, fresh] = result.emplace(renamed, Source{name, weights.tensor(name)});
    if (!fresh)
      plan.problems.push_back(cat("NAME_MAP makes ", quoted_for_message(renamed), " of both ",
                                  quoted_for_message(at->second.name), " and ", quoted_for_message(name)));
  }
  return result;
}

void plan_copies(const torch::nn::Module& model, std::map<std::string, Source> left, const Config& config, Plan& plan) {
  const std::vector<NamePattern> ignore = name_patterns(config, "IGNORE_KEYS");
  std::vector<NamedParameter> targets = named_parameters(model);
  for (NamedParameter& buffer : named_buffers(model)) targets.push_back(std::move(buffer));
  for (const NamedParameter& target : targets) {
    std::vector<std::string> names{target.name};
    names.insert(names.end(), target.aliases.begin(), target.aliases.end());
    std::erase_if(names, [&](const std::string& name) { return any_found_in(ignore, name); });
    if (names.empty()) {
      ++plan.ignored;
      continue;
    }
    bool found = false;
    for (const std::string& name : names) {
      const auto at = left.find(name);
      if (at == left.end()) continue;
      const at::Tensor& from = at->second.tensor;
      if (from.sizes() != target.tensor.sizes())
        plan.problems.push_back(cat(renamed_text(name, at->second), " is ", tensor_text(from), ", the model's ",
                                    tensor_text(target.tensor)));
      else if (from.is_complex() && !target.tensor.is_complex())
        plan.problems.push_back(cat(renamed_text(name, at->second), " is ", tensor_text(from), ", the model's ",
                                    tensor_text(target.tensor), ": half of each number would be lost"));
      else if (!found)
        plan.copies.push_back({target.tensor, from});
      found = true;
      left.erase(at);
    }
    if (!found) plan.missing.push_back(names.front());
  }
  for (const auto& [name, source] : left) plan.unexpected.push_back(name);
}

/// "'head.weight' is not in the file; did you mean ...": one line for each name.
std::vector<std::string> lines_of(const std::vector<std::string>& names, const std::vector<std::string>& others,
                                  const char* has, const char* lacks) {
  const bool compare = names.size() * others.size() <= kMostComparisons;
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    std::string line = cat(has, " has ", quoted_for_message(name), ", ", lacks, " has not");
    if (const auto near = compare ? near_matches(name, others, 1) : std::vector<std::string>(); !near.empty())
      line += cat("; it has ", quoted_for_message(near.front()));
    lines.push_back(std::move(line));
  }
  return lines;
}

/// When all names of one side are names of the other with one beginning more, as DistributedDataParallel adds
/// "module.": that beginning.
std::optional<std::string> common_beginning(const std::vector<std::string>& longer,
                                            const std::vector<std::string>& shorter) {
  const std::set<std::string_view> known(shorter.begin(), shorter.end());
  std::optional<std::string> beginning;
  for (const std::string& name : longer) {
    if (!beginning.has_value()) {
      for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
        if (known.count(std::string_view(name).substr(dot + 1)) != 0) beginning = name.substr(0, dot + 1);
      if (!beginning.has_value()) return std::nullopt;
    }
    if (!name.starts_with(*beginning) || known.count(std::string_view(name).substr(beginning->size())) == 0)
      return std::nullopt;
  }
  return beginning;
}

std::string escaped(std::string text) {
  for (std::size_t dot = text.find('.'); dot != std::string::npos; dot = text.find('.', dot + 2))
    text.insert(dot, "\\");
  return text;
}

std::string advice(const Plan& plan) {
  if (const auto more = common_beginning(plan.unexpected, plan.missing))
    return cat("Write NAME_MAP: [{FROM: '^", escaped(*more), "', TO: ''}]");
  if (const auto less = common_beginning(plan.missing, plan.unexpected))
    return cat("Write NAME_MAP: [{FROM: '^', TO: '", *less, "'}]");
  return "NAME_MAP renames, IGNORE_KEYS leaves names out, STRICT: false takes what fits";
}

std::string names_text(const std::vector<std::string>& names) {
  std::vector<std::string> some(names.begin(),
                                names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesInALine)));
  const std::size_t rest = names.size() - some.size();
  return join(some, ", ") + (rest > 0 ? cat(" and ", rest, " more") : "");
}

std::string account(const Plan& plan, const std::string& path) {
  std::string line = cat("loaded ", plan.copies.size(), " tensors from ", path);
  if (!plan.missing.empty()) line += cat("; not in the file, left as initialised: ", names_text(plan.missing));
  if (!plan.unexpected.empty()) line += cat("; not in the model: ", names_text(plan.unexpected));
  if (plan.ignored > 0) line += cat("; ", plan.ignored, " left out by IGNORE_KEYS");
  return line;
}

}  // namespace

void load_pretrained(torch::nn::Module& model, const Config& config, FileSystems& files, const Logger& logger) {
  if (!config.has("PRETRAINED_MODEL")) return;
  const std::string path = config.get<std::string>("PRETRAINED_MODEL");
  const bool strict = config.get<bool>("STRICT");
  Plan plan;
  try {
    const LocalCopy local = files.get_from(path);  // outlives the tensors, which alias its files
    const WeightFiles weights = WeightFiles::open(local.path());
    plan_copies(model, sources(weights, config, plan), config, plan);
    if (strict) {
      for (std::string& line : lines_of(plan.missing, plan.unexpected, "the model", "the file"))
        plan.problems.push_back(std::move(line));
      for (std::string& line : lines_of(plan.unexpected, plan.missing, "the file", "the model"))
        plan.problems.push_back(std::move(line));
    }
    if (plan.problems.empty() && plan.copies.empty())
      plan.problems.push_back(cat("no name of the file is one of the model's. The model has ",
                                  plan.missing.empty() ? "nothing" : names_text(plan.missing), "; the file has ",
                                  plan.unexpected.empty() ? "nothing" : names_text(plan.unexpected)));
    if (!plan.problems.empty())
      throw config.error("PRETRAINED_MODEL", cat(path, " does not fit the model; nothing of it was loaded:\n  ",
                                                 join(plan.problems, "\n  "), "\n  ", advice(plan)));
    at::NoGradGuard no_grad;
    for (Copy& copy : plan.copies) copy.to.copy_(copy.from);
    logger.info(account(plan, path));
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw config.error("PRETRAINED_MODEL", cat("cannot be loaded: ", error.what()));
  }
}

}  // namespace gantry
