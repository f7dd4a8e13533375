#include <gantry/error.h>
#include <gantry/lr_scheduler.h>
#include <gantry/plugin.h>
#include <gantry/text.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "expression.h"

namespace {

/// base_lr times what an expression, or a table, gives: PyTorch's LambdaLR without Python.
class LambdaLR final : public gantry::LrScheduler {
 public:
  static void declare(gantry::Parameters& p) {
    p.optional<std::vector<std::string>>("LR_LAMBDA")
        .not_empty()
        .help(
            "What the group's own rate is multiplied by: an expression such as 0.95 ** epoch, or a list with one for "
            "each group. It may name t (the position in UNIT), epoch (completed ones), step (0 at the first), "
            "total_epochs, total_steps; + - * / // % **, comparisons, c ? a : b, min, max, abs, sqrt, exp, log, sin, "
            "cos, floor, ceil, pi.");
    p.optional<std::vector<double>>("TABLE").at_least(0).not_empty().help(
        "In place of LR_LAMBDA: the factors for positions 0, 1, ... in UNIT; the last one stays.");
  }

  LambdaLR(const gantry::Config& config, gantry::Context&)
      : counts_epochs_(config.has("UNIT") && config.get<std::string>("UNIT") == "epoch") {
    const bool has_table = config.has("TABLE");
    if (config.has("LR_LAMBDA") == has_table)
      throw config.error("LR_LAMBDA", has_table ? "and TABLE exclude each other: give one of them"
                                                : "is missing: an expression such as 0.95 ** epoch; or give TABLE, a "
                                                  "list of factors");
    if (has_table) {
      table_ = config.get<std::vector<double>>("TABLE");
      return;
    }
    for (const std::string& text : config.get<std::vector<std::string>>("LR_LAMBDA")) {
      try {
        expressions_.emplace_back(text);
      } catch (const std::invalid_argument& error) {
        throw config.error("LR_LAMBDA", gantry::cat("'", text, "' cannot be read: ", error.what()));
      }
    }
  }

  double lr(const gantry::SchedulePosition& position, double base_lr, int64_t group) const override {
    return base_lr * (table_.empty() ? value_of(expression(group), position) : entry(position.at));
  }

 private:
  double entry(double at) const {
    return table_[static_cast<std::size_t>(std::min(std::floor(at), static_cast<double>(table_.size() - 1)))];
  }

  const Expression& expression(int64_t group) const {
    if (expressions_.size() == 1) return expressions_.front();
    if (group >= static_cast<int64_t>(expressions_.size()))
      throw gantry::Error(gantry::cat("LR_LAMBDA has ", expressions_.size(),
                                      " expressions, but the optimizer has a group ", group,
                                      ", counted from 0: give one expression, or one for each group"));
    return expressions_[static_cast<std::size_t>(group)];
  }

  double value_of(const Expression& expression, const gantry::SchedulePosition& position) const {
    ExpressionVariables variables;
    variables.t = position.at;
    // A fraction of an epoch is there only on request, and then in a position that counts epochs.
    variables.epoch = counts_epochs_ ? position.at : std::floor(position.epoch);
    variables.step = static_cast<double>(position.step);
    variables.total_epochs = position.total_epochs;
    variables.total_steps = static_cast<double>(position.total_steps);
    const double value = expression(variables);
    if (!std::isfinite(value) || value < 0)
      throw gantry::Error(gantry::cat("LR_LAMBDA '", expression.text(), "' is ", gantry::number_text(value),
                                      " at epoch ", gantry::number_text(variables.epoch), ", step ", position.step,
                                      ": a learning rate is to be a finite number that is not negative"));
    return value;
  }

  bool counts_epochs_;
  std::vector<Expression> expressions_;
  std::vector<double> table_;
};

}  // namespace

GANTRY_PLUGIN("gantry-lambda-lr", GANTRY_VERSION);
GANTRY_LR_SCHEDULER(LambdaLR, "LambdaLR", "Multiplies the learning rate by an expression, or by a table.");
