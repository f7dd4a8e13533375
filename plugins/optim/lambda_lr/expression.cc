#include "expression.h"

#include <muParser.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace {

double power(double a, double b) { return std::pow(a, b); }
double quotient(double a, double b) { return std::floor(a / b); }
double remainder_of(double a, double b) { return a - b * std::floor(a / b); }
double round_down(double a) { return std::floor(a); }
double round_up(double a) { return std::ceil(a); }

}  // namespace

struct Expression::Parser {
  mu::Parser parser;
  ExpressionVariables variables;

  double evaluate(const ExpressionVariables& at) {
    variables = at;
    int count = 0;
    const double* results = parser.Eval(count);
    if (count != 1) throw std::invalid_argument("it is several expressions; write one, with a point in each number");
    if (!(variables == at)) throw std::invalid_argument("it assigns to a variable; '==' compares");
    return results[0];
  }
};

Expression::Expression(const std::string& text) : text_(text), parser_(std::make_unique<Parser>()) {
  mu::Parser& parser = parser_->parser;
  try {
    parser.DefineOprt("**", power, mu::prPOW, mu::oaRIGHT, true);
    parser.DefineOprt("//", quotient, mu::prMUL_DIV, mu::oaLEFT, true);
    parser.DefineOprt("%", remainder_of, mu::prMUL_DIV, mu::oaLEFT, true);
    parser.DefineFun("floor", round_down);
    parser.DefineFun("ceil", round_up);
    parser.DefineConst("pi", std::numbers::pi);
    ExpressionVariables& variables = parser_->variables;
    parser.DefineVar("t", &variables.t);
    parser.DefineVar("epoch", &variables.epoch);
    parser.DefineVar("step", &variables.step);
    parser.DefineVar("total_epochs", &variables.total_epochs);
    parser.DefineVar("total_steps", &variables.total_steps);
    parser.SetExpr(text);
    // muParser reads the text at the first evaluation. Values that no assignment would leave as they are.
    parser_->evaluate({0.125, 1.125, 2.125, 3.125, 4.125});
  } catch (const mu::Parser::exception_type& error) {
    std::string what = error.GetMsg();
    while (what.ends_with('.') || what.ends_with(' ')) what.pop_back();
    // Negative for an error of the whole; past its end where something is missing there.
    const int position = std::min(error.GetPos(), static_cast<int>(text.size()));
    if (position >= 0 && what.find("position") == std::string::npos) what += " at position " + std::to_string(position);
    throw std::invalid_argument(what);
  }
}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;

double Expression::operator()(const ExpressionVariables& variables) const { return parser_->evaluate(variables); }
