#include "curve_svg.h"

#include <gantry/json.h>
#include <gantry/text.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace val_loss {

namespace {

using gantry::cat;

constexpr double kWidth = 860, kHeight = 460, kLeft = 78, kRight = 30, kTop = 52, kBottom = 58, kLegend = 190;
// Told apart also by people who do not see all colours (Okabe and Ito's, without the yellow).
constexpr const char* kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};

std::string fixed(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string tick_text(double value, double step) {
  char text[48];
  if (value != 0 && (std::abs(value) >= 1e7 || std::abs(value) < 1e-4)) {
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 8);
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// Fit for the text of an SVG file; at most `most` characters.
std::string escaped(std::string_view text, std::size_t most = 200) {
  std::string out;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return out + "..";
    const std::size_t length = gantry::utf8_length(text);
    const char c = text.front();
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (length == 0 || static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

struct Range {
  double low = 0, high = 1;
};

/// Of what is finite, with some room; a single value stands in the middle.
Range range_of(const std::vector<Curve>& curves, bool of_y) {
  bool any = false;
  Range range;
  for (const Curve& curve : curves) {
    for (const auto& [x, y] : curve.points) {
      if (!std::isfinite(y)) continue;
      const double value = of_y ? y : x;
      range.low = any ? std::min(range.low, value) : value;
      range.high = any ? std::max(range.high, value) : value;
      any = true;
    }
  }
  if (!any) return {};
  const double spread = range.high - range.low;
  if (!of_y) return {range.low, spread > 0 ? range.high : range.low + 1};
  const double room = spread > 0 ? 0.06 * spread : std::max(1e-3, std::abs(range.low) * 0.1);
  return {range.low - room, range.high + room};
}

}  // namespace

std::vector<double> ticks(double low, double high, int most) {
  std::vector<double> all;
  if (!(high > low) || !std::isfinite(high - low) || most < 1) return all;
  const double rough = (high - low) / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power < rough) continue;
    step = factor * power;
    break;
  }
  const double first = std::ceil(low / step - 1e-9);
  for (double i = first; i * step <= high + 1e-9 * step; ++i) all.push_back(i * step + 0.0);
  return all;
}

std::string curve_svg(const std::string& title, const std::string& x_name, const std::string& y_name,
                      const std::vector<Curve>& curves) {
  const bool legend = curves.size() > 1;
  const double right = kWidth - kRight - (legend ? kLegend : 0), bottom = kHeight - kBottom;
  const Range xs = range_of(curves, false), ys = range_of(curves, true);
  const auto at_x = [&](double x) { return fixed(kLeft + (x - xs.low) / (xs.high - xs.low) * (right - kLeft)); };
  const auto at_y = [&](double y) { return fixed(bottom - (y - ys.low) / (ys.high - ys.low) * (bottom - kTop)); };
  const auto text = [](double x, double y, const char* anchor, const std::string& words, const char* more = "") {
    return cat("<text x=\"", fixed(x), "\" y=\"", fixed(y), "\" text-anchor=\"", anchor, "\"", more, ">",
               escaped(words), "</text>\n");
  };

  std::string svg = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ", kHeight, "\" width=\"",
                        kWidth, "\" height=\"", kHeight,
                        "\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"#444\">\n"
                        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
  svg += text(kLeft, 28, "start", title, " font-size=\"17\" font-weight=\"600\" fill=\"#1d2329\"");
  const std::vector<double> x_ticks = ticks(xs.low, xs.high, std::clamp(static_cast<int>(xs.high - xs.low), 1, 8)),
                            y_ticks = ticks(ys.low, ys.high, 6);
  const auto step_of = [](const std::vector<double>& all) { return all.size() > 1 ? all[1] - all[0] : 1.0; };
  for (const double y : y_ticks) {
    svg += cat("<line x1=\"", kLeft, "\" x2=\"", right, "\" y1=\"", at_y(y), "\" y2=\"", at_y(y),
               "\" stroke=\"#e4e7ea\"/>\n");
    svg += cat("<text x=\"", kLeft - 10, "\" y=\"", at_y(y), "\" dy=\"4\" text-anchor=\"end\">",
               tick_text(y, step_of(y_ticks)), "</text>\n");
  }
  for (const double x : x_ticks) {
    svg += cat("<line x1=\"", at_x(x), "\" x2=\"", at_x(x), "\" y1=\"", bottom, "\" y2=\"", bottom + 5,
               "\" stroke=\"#888\"/>\n<text x=\"", at_x(x), "\" y=\"", bottom + 21, "\" text-anchor=\"middle\">",
               tick_text(x, step_of(x_ticks)), "</text>\n");
  }
  svg += cat("<line x1=\"", kLeft, "\" x2=\"", right, "\" y1=\"", bottom, "\" y2=\"", bottom, "\" stroke=\"#888\"/>\n",
             "<line x1=\"", kLeft, "\" x2=\"", kLeft, "\" y1=\"", kTop, "\" y2=\"", bottom, "\" stroke=\"#888\"/>\n");
  svg += text((kLeft + right) / 2, kHeight - 14, "middle", x_name);
  svg += cat("<text transform=\"translate(22 ", (kTop + bottom) / 2, ") rotate(-90)\" text-anchor=\"middle\">",
             escaped(y_name), "</text>\n");

  // The main curve last, so that it lies on top.
  for (std::size_t c = curves.size(); c-- > 0;) {
    const char* color = kColors[c % std::size(kColors)];
    std::string path, dots;
    bool open = false;
    for (const auto& [x, y] : curves[c].points) {
      if (!std::isfinite(y)) {
        open = false;
        continue;
      }
      path += cat(open ? "L" : "M", at_x(x), " ", at_y(y));
      open = true;
      dots += cat("<circle cx=\"", at_x(x), "\" cy=\"", at_y(y), "\" r=\"", c == 0 ? 3 : 2.2, "\"/>");
    }
    svg += cat("<g fill=\"none\" stroke=\"", color, "\" stroke-width=\"", c == 0 ? 2.4 : 1.3,
               "\" stroke-linejoin=\"round\"><path d=\"", path, "\"/></g>\n");
    if (curves[c].points.size() <= 60) svg += cat("<g fill=\"", color, "\">", dots, "</g>\n");
    if (!legend) continue;
    const double y = kTop + 10 + 21 * static_cast<double>(c);
    if (y > bottom) continue;
    svg += cat("<line x1=\"", right + 20, "\" x2=\"", right + 42, "\" y1=\"", y, "\" y2=\"", y, "\" stroke=\"", color,
               "\" stroke-width=\"", c == 0 ? 2.4 : 1.3, "\"/>\n");
    svg += cat("<text x=\"", right + 49, "\" y=\"", y + 4, "\">", escaped(curves[c].name, 22), "</text>\n");
  }
  return svg + "</svg>\n";
}

}  // namespace val_loss
