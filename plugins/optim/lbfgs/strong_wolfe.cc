#include "strong_wolfe.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace {

constexpr double kSufficientDecrease = 1e-4;
constexpr double kCurvature = 0.9;

/// Where the cubic that has both points' values and slopes is least, within bounds; their middle where it has no least.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double t = a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                              : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(t, low), high);
}

/// Two points with one that satisfies the conditions between them.
struct Bracket {
  LinePoint ends[2];
  int low = 0;  // the end with the smaller loss

  void choose_low() { low = ends[0].loss <= ends[1].loss ? 0 : 1; }
  double least() const { return std::min(ends[0].t, ends[1].t); }
  double greatest() const { return std::max(ends[0].t, ends[1].t); }
};

/// A guess at an end of the bracket, or a second one close to it, is moved a tenth of the bracket inwards.
double kept_from_ends(const Bracket& bracket, double t, bool& was_close) {
  const double least = bracket.least(), greatest = bracket.greatest();
  const double margin = 0.1 * (greatest - least);
  if (!(std::min(greatest - t, t - least) < margin)) {
    was_close = false;
    return t;
  }
  if (!was_close && t < greatest && t > least) {
    was_close = true;
    return t;
  }
  was_close = false;
  return std::abs(t - greatest) < std::abs(t - least) ? greatest - margin : least + margin;
}

}  // namespace

LinePoint strong_wolfe(const LineSearch& search, const LinePoint& start, double t, int64_t& evaluations) {
  const auto decreases = [&](const LinePoint& point) {
    return !(point.loss > start.loss + kSufficientDecrease * point.t * start.slope);
  };
  const auto is_flat = [&](const LinePoint& point) { return std::abs(point.slope) <= -kCurvature * start.slope; };
  int64_t left = search.max_evaluations;

  evaluations = 1;
  LinePoint previous = start, point = search.evaluate(t);
  const auto next = [&](double at) {
    ++evaluations;
    --left;
    return search.evaluate(at);
  };
  bool bracketed = false;
  while (left > 0 && !bracketed) {
    const bool first_two = evaluations <= 2;
    if (!decreases(point) || (!first_two && point.loss >= previous.loss)) {
      bracketed = true;
    } else if (is_flat(point)) {
      return point;
    } else if (point.slope >= 0) {
      bracketed = true;
    } else {
      const double guess = cubic_minimum(previous, point, point.t + 0.01 * (point.t - previous.t), point.t * 10);
      previous = std::exchange(point, next(guess));
    }
  }

  Bracket bracket{{bracketed ? previous : start, point}};
  bracket.choose_low();
  bool was_close = false;
  while (left > 0) {
    LinePoint& low = bracket.ends[bracket.low];
    LinePoint& high = bracket.ends[1 - bracket.low];
    if (std::abs(high.t - low.t) * search.direction_size < search.tolerance_change) break;
    const double guess = cubic_minimum(bracket.ends[0], bracket.ends[1], bracket.least(), bracket.greatest());
    point = next(kept_from_ends(bracket, guess, was_close));
    if (!decreases(point) || point.loss >= low.loss) {
      high = std::move(point);
      bracket.choose_low();
      continue;
    }
    const bool done = is_flat(point);
    if (!done && point.slope * (high.t - low.t) >= 0) high = low;
    low = std::move(point);
    if (done) break;
  }
  return bracket.ends[bracket.low];
}
