#pragma once

#include <memory>
#include <string>

/// What an expression may name.
struct ExpressionVariables {
  double t = 0, epoch = 0, step = 0, total_epochs = 0, total_steps = 0;
  bool operator==(const ExpressionVariables&) const = default;
};

/// A formula such as "0.95 ** epoch", by muParser: its operators and functions, and Python's **, //, %, floor, ceil,
/// pi. Not thread-safe.
class Expression {
 public:
  /// Throws std::invalid_argument that says what is wrong and where.
  explicit Expression(const std::string& text);
  ~Expression();
  Expression(Expression&&) noexcept;

  const std::string& text() const { return text_; }
  double operator()(const ExpressionVariables& variables) const;

 private:
  struct Parser;
  std::string text_;
  std::unique_ptr<Parser> parser_;
};
