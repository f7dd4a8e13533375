#include "page.h"

#include <gantry/json.h>
#include <gantry/tensor_text.h>
#include <gantry/text.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "page_style.h"

namespace probe_data {

namespace {

using gantry::cat;
using gantry::Probe;
using gantry::short_number;

constexpr std::size_t kMostBars = 48;
constexpr std::string_view kStepsBegin = "<nav>", kStepsEnd = "</nav>";

std::string page(const std::string& title, const std::string& body) {
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      html(title), "</title>\n<style>", kPageStyle, "</style>\n</head>\n<body>\n", body, "</body>\n</html>\n");
}

std::string section(const Probe& probe, const std::string& remark, const std::string& body) {
  return cat("<section>\n<h2>", html(probe.name), "</h2><p class=\"remark\">", remark, "</p>\n", body, "</section>\n");
}

/// A whole factor that makes small pictures large enough to be seen.
int64_t enlargement(int64_t height, int64_t width, int64_t wanted) {
  return std::clamp<int64_t>(wanted / std::max(height, width), 1, 16);
}

std::string picture(const std::string& file, const std::string& label, int64_t height, int64_t width, int64_t wanted) {
  const int64_t factor = enlargement(height, width, wanted);
  const std::string caption = label.empty() ? "" : cat("<figcaption>", html(label), "</figcaption>");
  return cat("<figure><a href=\"", file, "\"><img src=\"", file, "\" alt=\"", html(label), "\" width=\"",
             width * factor, "\" height=\"", height * factor, "\"", factor > 1 ? " class=\"enlarged\"" : "",
             " loading=\"lazy\"></a>", caption, "</figure>\n");
}

std::string pictures_section(const Item& item) {
  const Probe& probe = *item.probe;
  const int64_t count = probe.value.dim() == 4 ? probe.value.size(0) : 1;
  const int64_t height = probe.value.size(-2), width = probe.value.size(-1);
  std::string remark = cat(count, count == 1 ? " picture" : " pictures", " of ", width, " &times; ", height,
                           probe.value.size(-3) == 3 ? ", RGB" : ", gray");
  std::string body = "<div class=\"pictures\">\n";
  if (item.files.empty()) {
    body += picture(item.file, probe.labels.empty() ? "" : probe.labels.front(), height, width, 320);
  } else {
    remark += cat(" &middot; <a href=\"", item.file, "\">all in one</a>");
    for (std::size_t i = 0; i < item.files.size(); ++i)
      body += picture(item.files[i], probe.labels.empty() ? "" : probe.labels[i], height, width, 128);
  }
  return section(probe, remark, body + "</div>\n");
}

std::string two_decimals(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

/// Integers are written as such.
std::string value_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? std::to_string(static_cast<int64_t>(value))
                                                              : short_number(value);
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

/// A chart of bars, the largest as high as it is. `named`: each bar stands for one value.
std::string bar_chart(const std::vector<ValueCounts::Bar>& bars, bool named) {
  constexpr double kWidth = 640, kTop = 16, kFoot = 150, kHeight = 170;
  constexpr std::size_t kMostTexts = 16;
  double largest = 0, total = 0;
  for (const ValueCounts::Bar& bar : bars) {
    largest = std::max(largest, bar.count);
    total += bar.count;
  }
  const double step = kWidth / static_cast<double>(bars.size());
  const double width = std::min(step - std::min(step * 0.15, 4.0), 48.0);
  const auto text = [](double x, double y, const char* anchor, const std::string& words) {
    return cat("<text x=\"", two_decimals(x), "\" y=\"", two_decimals(y), "\" text-anchor=\"", anchor, "\">", words,
               "</text>");
  };
  std::string svg = cat("<svg class=\"bars\" viewBox=\"0 0 ", kWidth, " ", kHeight,
                        "\" role=\"img\"><line x1=\"0\" x2=\"", kWidth, "\" y1=\"", kFoot, "\" y2=\"", kFoot, "\"/>");
  const std::size_t every = (bars.size() + kMostTexts - 1) / kMostTexts;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const ValueCounts::Bar& bar = bars[i];
    const double height = largest > 0 ? bar.count / largest * (kFoot - kTop) : 0;
    const double share = total > 0 ? bar.count / total : 0;
    const double left = static_cast<double>(i) * step + (step - width) / 2, middle = left + width / 2;
    const std::string name = named ? value_text(bar.low) : short_number(bar.low) + " to " + short_number(bar.high);
    svg += cat("<rect x=\"", two_decimals(left), "\" y=\"", two_decimals(kFoot - height), "\" width=\"",
               two_decimals(width), "\" height=\"", two_decimals(height), "\"><title>", name, ": ",
               value_text(std::round(bar.count)), ", ", percent(share), "</title></rect>");
    if (named && i % every == 0) svg += text(middle, kFoot + 15, "middle", name);
    if (named && bars.size() <= kMostTexts) svg += text(middle, kFoot - height - 4, "middle", percent(share));
  }
  if (!named) {
    svg += text(0, kFoot + 15, "start", short_number(bars.front().low)) +
           text(kWidth, kFoot + 15, "end", short_number(bars.back().high)) +
           text(0, 11, "start", "highest: " + percent(total > 0 ? largest / total : 0));
  }
  return svg + "</svg>\n";
}

std::string tensor_section(const Item& item) {
  const TensorSummary summary = summary_of(item.probe->value);
  const std::string remark =
      cat(gantry::tensor_text(item.probe->value), " &middot; <a href=\"", item.file, "\">", item.file, "</a>");
  std::string table = "<table><tr>";
  const auto cell = [&](const char* name, const std::string& value) {
    table += cat("<th>", name, "</th><td>", value, "</td>");
  };
  if (summary.finite > 0) {
    cell("min", short_number(summary.smallest));
    cell("mean", short_number(summary.mean));
    cell("max", short_number(summary.largest));
  }
  if (summary.not_finite > 0) cell("NaN or infinite", std::to_string(summary.not_finite));
  if (summary.finite + summary.not_finite == 0) cell("values", "none");
  table += "</tr></table>\n";
  return section(*item.probe, remark, table + (summary.histogram.empty() ? "" : bar_chart(summary.histogram, false)));
}

std::string distribution_section(const Item& item) {
  const ValueCounts& counts = *item.counts;
  std::string remark = cat(counts.total(), counts.total() == 1 ? " value" : " values", " since the run began");
  if (counts.total() > 0) remark += cat(", from ", value_text(counts.smallest()), " to ", value_text(counts.largest()));
  if (counts.not_finite() > 0) remark += cat("; ", counts.not_finite(), " NaN or infinite");
  const std::vector<ValueCounts::Bar> bars = counts.bars_to_show(kMostBars);
  const bool labelled = counts.exact() && !bars.empty() && bars.front().low == bars.front().high;
  return section(*item.probe, remark, bars.empty() ? "" : bar_chart(bars, labelled));
}

std::string neighbours_html(const Neighbours& neighbours) {
  const auto link = [](const std::string& folder, const char* id, const std::string& text) {
    return folder.empty() ? cat("<span>", text, "</span>")
                          : cat("<a id=\"", id, "\" href=\"../", folder, "/index.html\">", text, "</a>");
  };
  return cat(kStepsBegin, link(neighbours.previous, "previous", "&larr; " + neighbours.previous),
             "<a href=\"../index.html\">all steps</a>", link(neighbours.next, "next", neighbours.next + " &rarr;"),
             kStepsEnd);
}

std::string heading(const std::string& title, const std::string& remark) {
  return cat("<header><h1>", title, "</h1><p class=\"remark\">", remark, "</p></header>\n");
}

}  // namespace

std::string html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = gantry::utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(character.size());
    const char c = character.front();
    if (length == 0 || (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
      out += "\xEF\xBF\xBD";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += character;
  }
  return out;
}

std::string step_page(const Step& step, const std::vector<Item>& items, const Neighbours& neighbours) {
  std::string pictures, numbers, texts, distributions, tensors;
  for (const Item& item : items) {
    const Probe& probe = *item.probe;
    switch (probe.kind) {
      case Probe::Kind::image:
        pictures += pictures_section(item);
        break;
      case Probe::Kind::number:
        numbers += cat("<tr><th>", html(probe.name), "</th><td>", short_number(probe.number), "</td></tr>\n");
        break;
      case Probe::Kind::text:
        texts += section(probe, "", cat("<pre>", html(probe.labels.empty() ? "" : probe.labels.front()), "</pre>\n"));
        break;
      case Probe::Kind::distribution:
        distributions += distribution_section(item);
        break;
      case Probe::Kind::tensor:
        tensors += tensor_section(item);
        break;
    }
  }
  if (!numbers.empty()) numbers = cat("<section>\n<h2>Numbers</h2>\n<table>\n", numbers, "</table>\n</section>\n");
  const std::string title = cat(step.mode, ", iteration ", step.iteration);
  return page(title, cat(neighbours_html(neighbours), "\n",
                         heading(title, cat(step.epoch > 0 ? cat("epoch ", step.epoch, " &middot; ") : "",
                                            "<a href=\"meta.json\">meta.json</a>")),
                         pictures, numbers, texts, distributions, tensors, kArrowKeys));
}

std::string with_neighbours(std::string page, const Neighbours& neighbours) {
  const std::size_t begin = page.find(kStepsBegin), end = page.find(kStepsEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  return page.replace(begin, end + kStepsEnd.size() - begin, neighbours_html(neighbours));
}

std::string steps_page(const std::string& mode, const std::vector<StepLink>& steps) {
  std::string cards = "<div class=\"steps\">\n";
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    std::string thumbnails;
    for (const std::string& picture : step->pictures)
      thumbnails += cat("<img src=\"", step->folder, "/", picture, "\" alt=\"\" loading=\"lazy\">");
    cards += cat("<a class=\"card\" href=\"", step->folder, "/index.html\"><b>", html(step->folder), "</b>",
                 thumbnails.empty() ? "<i>no pictures</i>" : thumbnails, "</a>\n");
  }
  const std::string title = mode + " probes";
  return page(
      title, cat(heading(title, cat(steps.size(), steps.size() == 1 ? " step" : " steps", ", the newest first")), cards,
                 "</div>\n"));
}

}  // namespace probe_data
