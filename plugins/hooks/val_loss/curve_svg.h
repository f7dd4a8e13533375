#pragma once

#include <string>
#include <utility>
#include <vector>

namespace val_loss {

/// A line of a chart: points by ascending x. What is not finite leaves a gap.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// A chart as an SVG file, with axes, ticks at round numbers, and names. The first curve is the main one.
std::string curve_svg(const std::string& title, const std::string& x_name, const std::string& y_name,
                      const std::vector<Curve>& curves);

/// At most about `most` round numbers within [low, high]: steps of 1, 2 or 5 times a power of ten.
std::vector<double> ticks(double low, double high, int most);

}  // namespace val_loss
