#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <gantry/gantry.h>
#include <gantry/optimizer.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "strong_wolfe.h"

namespace {

using Slots = std::span<gantry::Slot>;

constexpr double kLeastCurvature = 1e-10;  // a pair with less would spoil the approximation

double largest(const at::Tensor& flat) { return flat.abs().max().item().toDouble(); }
double dot(const at::Tensor& a, const at::Tensor& b) { return a.dot(b).item().toDouble(); }

/// All gradients, one after the other; zeros where a parameter took no part.
at::Tensor flat_gradient(Slots slots) {
  std::vector<at::Tensor> parts;
  parts.reserve(slots.size());
  for (const gantry::Slot& slot : slots) {
    if (!slot.gradient.defined())
      parts.push_back(at::zeros({slot.parameter.numel()}, slot.parameter.options().requires_grad(false)));
    else
      parts.push_back((slot.gradient.is_sparse() ? slot.gradient.to_dense() : slot.gradient).reshape({-1}));
  }
  return at::cat(parts);
}

/// Moves all parameters by `step` times `direction`.
void move(Slots slots, double step, const at::Tensor& direction) {
  int64_t offset = 0;
  for (gantry::Slot& slot : slots) {
    const int64_t size = slot.parameter.numel();
    slot.parameter.add_(direction.narrow(0, offset, size).view_as(slot.parameter), step);
    offset += size;
  }
}

/// The latest changes of the parameters and of the gradient, from which the inverse of the Hessian is approximated.
class History {
 public:
  explicit History(int64_t size) : size_(static_cast<std::size_t>(size)) {}

  void add(at::Tensor gradient_change, at::Tensor parameter_change) {
    const double curvature = dot(gradient_change, parameter_change);
    if (!(curvature > kLeastCurvature)) return;
    if (pairs_.size() == size_) pairs_.pop_front();
    scale_ = curvature / dot(gradient_change, gradient_change);
    pairs_.push_back({std::move(gradient_change), std::move(parameter_change), 1 / curvature});
  }

  /// Minus the approximated inverse times the gradient: the two loops of the method.
  at::Tensor direction(const at::Tensor& gradient) const {
    at::Tensor result = gradient.neg();
    std::vector<double> alpha(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      alpha[i] = dot(pairs_[i].parameter_change, result) * pairs_[i].rho;
      result.add_(pairs_[i].gradient_change, -alpha[i]);
    }
    result.mul_(scale_);
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const double beta = dot(pairs_[i].gradient_change, result) * pairs_[i].rho;
      result.add_(pairs_[i].parameter_change, alpha[i] - beta);
    }
    return result;
  }

  void save(gantry::State& state) const {
    state.set_double("H_diag", scale_);
    state.set_int("history", static_cast<int64_t>(pairs_.size()));
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      state.set(gantry::cat("old_dirs/", i), pairs_[i].gradient_change);
      state.set(gantry::cat("old_stps/", i), pairs_[i].parameter_change);
      state.set_double(gantry::cat("ro/", i), pairs_[i].rho);
    }
  }

  /// Of a run with a larger HISTORY_SIZE the latest pairs are taken. `own` makes a tensor that nobody else holds.
  template <class Own>
  void load(const gantry::State& state, const Own& own) {
    std::deque<Pair> pairs;
    const int64_t count = state.integer("history");
    for (int64_t i = std::max<int64_t>(0, count - static_cast<int64_t>(size_)); i < count; ++i)
      pairs.push_back({own(state.tensor(gantry::cat("old_dirs/", i))), own(state.tensor(gantry::cat("old_stps/", i))),
                       state.number(gantry::cat("ro/", i))});
    scale_ = state.number("H_diag");
    pairs_ = std::move(pairs);
  }

 private:
  struct Pair {
    at::Tensor gradient_change, parameter_change;
    double rho;  // 1 / their product
  };
  std::size_t size_;
  std::deque<Pair> pairs_;
  double scale_ = 1;  // of the approximation to begin with
};

/// PyTorch's LBFGS. Each step is up to MAX_ITER moves along quasi-Newton directions of one batch's loss.
class Lbfgs final : public gantry::Optimizer, public gantry::ClosureOptimizer, public gantry::Stateful {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<double>("LEARNING_RATE", 1).at_least(0).help("How far to go along a direction; a line search begins there.");
    p.add<int64_t>("MAX_ITER", 20).at_least(1).help("Moves in one step, at most.");
    p.optional<int64_t>("MAX_EVAL")
        .at_least(1)
        .help("Evaluations of the loss in one step, after which it ends. Default: 1.25 times MAX_ITER.");
    p.add<double>("TOLERANCE_GRAD", 1e-7).at_least(0).help("A step ends where no element of the gradient is larger.");
    p.add<double>("TOLERANCE_CHANGE", 1e-9)
        .at_least(0)
        .help("A step ends where neither the loss nor any parameter changes by more.");
    p.add<int64_t>("HISTORY_SIZE", 100)
        .at_least(1)
        .help("Moves that are remembered; each takes twice the parameters' memory.");
    p.add<std::string>("LINE_SEARCH_FN", "none")
        .choices({"none", "strong_wolfe"})
        .help("none: moves of LEARNING_RATE; strong_wolfe: moves whose length is searched for.");
  }

  Lbfgs(const gantry::Config& config, gantry::Context& context)
      : Optimizer(config),
        device_(context.device()),
        max_iter_(config.get<int64_t>("MAX_ITER")),
        max_eval_(config.has("MAX_EVAL") ? config.get<int64_t>("MAX_EVAL") : max_iter_ * 5 / 4),
        tolerance_grad_(config.get<double>("TOLERANCE_GRAD")),
        tolerance_change_(config.get<double>("TOLERANCE_CHANGE")),
        searches_(config.get<std::string>("LINE_SEARCH_FN") == "strong_wolfe"),
        history_(config.get<int64_t>("HISTORY_SIZE")) {
    if (groups().size() != 1)
      throw config.error("PARAM_GROUPS", "is to be left out: LBFGS moves all parameters together");
  }

  std::vector<std::string> state_names() const override { return {}; }

  void step(Slots, const gantry::StepScope&) override {
    throw gantry::Error("LBFGS evaluates the loss several times in a step, and this solver takes steps without that");
  }

  void step(Slots slots, double loss, const std::function<double()>& evaluate) override {
    at::Tensor gradient = flat_gradient(slots);
    check_fits(gradient);
    const int64_t evaluations_before = evaluations_++;
    if (largest(gradient) <= tolerance_grad_) return;

    for (int64_t move_count = 1;; ++move_count) {
      choose_direction(gradient);
      const double rate = groups().front().lr();
      move_length_ = moves_ == 1 ? std::min(1.0, 1 / gradient.abs().sum().item().toDouble()) * rate : rate;
      const double slope = dot(gradient, direction_);
      if (slope > -tolerance_change_) return;

      const double loss_before = loss;
      if (searches_) {
        const LinePoint start{0, loss, slope, std::move(gradient)};
        const LinePoint found = search_line(slots, start, max_eval_ - (evaluations_ - evaluations_before), evaluate);
        move_length_ = found.t;
        loss = found.loss;
        gradient = found.gradient;
        move(slots, move_length_, direction_);
      } else {
        move(slots, move_length_, direction_);
        // The next step's batch evaluates where the last move has led.
        if (move_count == max_iter_) return;
        loss = evaluated(evaluate);
        gradient = flat_gradient(slots);
        ++evaluations_;
      }
      if (move_count == max_iter_ || evaluations_ - evaluations_before >= max_eval_) return;
      if (largest(gradient) <= tolerance_grad_) return;
      if (largest(direction_.mul(move_length_)) <= tolerance_change_) return;
      if (std::abs(loss - loss_before) < tolerance_change_) return;
    }
  }

  gantry::State state() const override {
    gantry::State state;
    state.set_int("func_evals", evaluations_);
    state.set_int("n_iter", moves_);
    if (moves_ == 0) return state;
    state.set("d", direction_);
    state.set_double("t", move_length_);
    state.set("prev_flat_grad", previous_gradient_);
    history_.save(state);
    return state;
  }

  void load_state(const gantry::State& state, int) override {
    const auto own = [&](const at::Tensor& saved) {
      return saved.to(saved.options().device(device_), /*non_blocking=*/false, /*copy=*/true);
    };
    evaluations_ = state.integer("func_evals");
    moves_ = state.integer("n_iter");
    if (moves_ == 0) return;
    direction_ = own(state.tensor("d"));
    move_length_ = state.number("t");
    previous_gradient_ = own(state.tensor("prev_flat_grad"));
    history_.load(state, own);
  }

 private:
  void check_fits(const at::Tensor& gradient) const {
    if (!direction_.defined() || direction_.numel() == gradient.numel()) return;
    throw gantry::Error(gantry::cat("the state of LBFGS is that of ", direction_.numel(),
                                    " numbers to train, here are ", gradient.numel(),
                                    ": resume with the model and the FREEZE of the first run"));
  }

  /// Where to go next; remembers the gradient, to compare with the one there.
  void choose_direction(const at::Tensor& gradient) {
    if (++moves_ == 1) {
      direction_ = gradient.neg();
    } else {
      history_.add(gradient.sub(previous_gradient_), direction_.mul(move_length_));
      direction_ = history_.direction(gradient);
    }
    previous_gradient_ = gradient;  // nobody writes to a gradient that was gathered
  }

  /// Leaves the parameters as they were.
  LinePoint search_line(Slots slots, const LinePoint& start, int64_t max_evaluations,
                        const std::function<double()>& evaluate) {
    std::vector<at::Tensor> parameters;
    for (const gantry::Slot& slot : slots) parameters.push_back(slot.parameter.clone());
    LineSearch search;
    search.direction_size = largest(direction_);
    search.tolerance_change = tolerance_change_;
    search.max_evaluations = max_evaluations;
    search.evaluate = [&](double t) {
      move(slots, t, direction_);
      LinePoint point;
      point.t = t;
      point.loss = evaluated(evaluate);
      point.gradient = flat_gradient(slots);
      point.slope = dot(point.gradient, direction_);
      for (std::size_t i = 0; i < slots.size(); ++i) slots[i].parameter.copy_(parameters[i]);
      return point;
    };
    int64_t evaluations = 0;
    LinePoint found = strong_wolfe(search, start, move_length_, evaluations);
    evaluations_ += evaluations;
    return found;
  }

  double evaluated(const std::function<double()>& evaluate) const {
    const double loss = evaluate();
    if (!std::isfinite(loss))
      throw gantry::Error(gantry::cat("the training loss became ", gantry::number_text(loss),
                                      " within a step of LBFGS, which cannot go on from there. Lower LEARNING_RATE",
                                      searches_ ? "" : ", or let LINE_SEARCH_FN: strong_wolfe choose how far to go"));
    return loss;
  }

  c10::Device device_;
  int64_t max_iter_, max_eval_;
  double tolerance_grad_, tolerance_change_;
  bool searches_;

  int64_t evaluations_ = 0, moves_ = 0;  // in all
  at::Tensor direction_, previous_gradient_;
  double move_length_ = 0;
  History history_;
};

}  // namespace

GANTRY_PLUGIN("gantry-lbfgs", GANTRY_VERSION);
GANTRY_OPTIMIZER(Lbfgs, "LBFGS", "Quasi-Newton steps on whole batches, with or without a line search.");
