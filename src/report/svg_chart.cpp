#include "report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "core/numbers.h"
#include "output/text_table.h"
#include "report/html.h"
#include "report/number_text.h"

namespace gradflow {
namespace {

// Pixels.
constexpr double picture_width = 760, margin = 14, right_margin = 6, heading = 52, axis_width = 48;
constexpr double above_plot = 28, plot_height = 208, below_plot = 42,
                 row_height = above_plot + plot_height + below_plot;
constexpr double character = 6.9, name_gap = 13, name_height = 13;
constexpr std::string_view prediction_dashes = "2 3";
constexpr std::string_view ink = "#1a1d21", pale = "#565d67", rule = "#9aa2ac", grid = "#e4e7eb";

/// A coordinate: one decimal at most.
std::string at(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

/// 10 with its exponent raised.
std::string power_text(double value) {
  const int exponent = static_cast<int>(std::lround(std::log10(value)));
  if (exponent == 0) return "1";
  if (exponent == 1) return "10";
  return fmt::format(R"(10<tspan dy="-4" font-size="8.5">{}{}</tspan>)", exponent < 0 ? "−" : "", std::abs(exponent));
}

/// A label and where its line ends.
struct Name {
  double y = 0;
  const ChartLine* line = nullptr;
};

/// Moves names apart that would touch: they form a cluster, centred on the mean of their lines.
void spread(std::vector<Name>& names, double low, double high) {
  struct Cluster {
    double middle;
    std::size_t first, count;
    double half() const { return static_cast<double>(count) * name_gap / 2; }
  };
  std::stable_sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.y < b.y; });
  std::vector<Cluster> clusters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    clusters.push_back({names[i].y, i, 1});
    while (clusters.size() > 1) {
      Cluster& a = clusters[clusters.size() - 2];
      const Cluster& b = clusters.back();
      if (a.middle + a.half() <= b.middle - b.half()) break;
      const auto m = static_cast<double>(a.count), n = static_cast<double>(b.count);
      a.middle = (a.middle * m + b.middle * n) / (m + n);
      a.count += b.count;
      clusters.pop_back();
    }
  }
  for (const Cluster& cluster : clusters) {
    const double reach = static_cast<double>(cluster.count - 1) * name_gap / 2;
    const double middle = std::max(low + reach, std::min(high - reach, cluster.middle));
    for (std::size_t i = 0; i < cluster.count; ++i)
      names[cluster.first + i].y = middle - reach + static_cast<double>(i) * name_gap;
  }
}

/// Draws one chart.
class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    std::size_t longest = 0;
    for (const ChartPanel& panel : chart.panels)
      for (const ChartLine& line : panel.lines) longest = std::max(longest, display_width(line.name));
    names_width_ = std::clamp(8 + character * static_cast<double>(longest), 63.0, 150.0);
    columns_ = chart.panels.size() > 1 ? 2 : 1;
    column_width_ = (picture_width - margin - right_margin) / static_cast<double>(columns_);
    plot_width_ = column_width_ - axis_width - names_width_;
  }

  std::string text() {
    const std::size_t rows = (chart_.panels.size() + columns_ - 1) / columns_;
    const double height = heading + row_height * static_cast<double>(rows);
    line(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" )"
         R"(aria-labelledby="{2}-t {2}-d" font-family="Helvetica, Arial, 'Liberation Sans', sans-serif" )"
         R"(font-size="11.5" fill="{3}"><title id="{2}-t">{4}</title><desc id="{2}-d">{5}</desc>)"
         R"(<rect width="{0}" height="{1}" fill="#fff"/>)",
         at(picture_width), at(height), chart_.id, ink, escaped_html(chart_.title), escaped_html(chart_.description));
    line(R"(<text x="14" y="22" font-size="14" font-weight="600">{}</text>)", escaped_html(chart_.title));
    line(R"(<text x="14" y="40" fill="{}">{}</text>)", pale, escaped_html(chart_.y_label));
    for (std::size_t i = 0; i < chart_.panels.size(); ++i) panel(i);
    return text_ + "</svg>\n";
  }

 private:
  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...) + '\n';
  }

  double scaled(double value) const { return chart_.logarithmic ? std::log10(value) : value; }
  /// Far outside the picture at most, so that a renderer need not cope with 1e30.
  double y(double value) const {
    if (chart_.logarithmic && !(value > 0)) return top_ + plot_height + 1000;
    const double share = (scaled(value) - scaled(chart_.low)) / (scaled(chart_.high) - scaled(chart_.low));
    return top_ + plot_height * (1 - std::clamp(share, -5.0, 6.0));
  }
  double x(double value) const {
    return left_ + plot_width_ * (last_x_ > first_x_ ? (value - first_x_) / (last_x_ - first_x_) : 0.5);
  }

  void panel(std::size_t index) {
    const ChartPanel& panel = chart_.panels[index];
    const double column = margin + column_width_ * static_cast<double>(index % columns_);
    left_ = column + (chart_.names_left ? names_width_ : axis_width);
    top_ = heading + row_height * static_cast<double>(index / columns_) + above_plot;
    first_x_ = panel.x.empty() ? 0 : panel.x.front();
    last_x_ = panel.x.empty() ? 1 : panel.x.back();
    line(R"(<clipPath id="{}-{}"><rect x="{}" y="{}" width="{}" height="{}"/></clipPath>)", chart_.id, index,
         at(left_ - 1), at(top_), at(plot_width_ + 2), at(plot_height));
    axes(panel);
    for (const ReferenceLine& reference : panel.references)
      if (in_sight(reference)) refer(reference);
    line(R"svg(<g clip-path="url(#{}-{})">)svg", chart_.id, index);
    for (const ChartLine& drawn : panel.lines) draw(panel, drawn);
    line("</g>");
    for (const ReferenceLine& reference : panel.references)
      if (in_sight(reference)) name_reference(panel, reference);
    titles(panel, names(panel));
  }

  void axes(const ChartPanel& panel) {
    for (const double tick :
         chart_.logarithmic ? decade_ticks(chart_.low, chart_.high) : round_ticks(chart_.low, chart_.high, 5)) {
      const std::string label = chart_.logarithmic ? power_text(tick) : significant(tick, 6);
      line(R"(<path d="M{} {}h{}" stroke="{}"/><text x="{}" y="{}" text-anchor="{}" fill="{}">{}</text>)", at(left_),
           at(y(tick)), at(plot_width_), grid, at(chart_.names_left ? left_ + plot_width_ + 6 : left_ - 6),
           at(y(tick) + 4), chart_.names_left ? "start" : "end", pale, label);
    }
    for (const double tick : panel.x.size() == 1 ? panel.x : round_ticks(first_x_, last_x_, 5)) {
      if (tick != std::floor(tick)) continue;
      line(R"(<path d="M{} {}v4" stroke="{}"/><text x="{}" y="{}" text-anchor="middle" fill="{}">{}</text>)",
           at(x(tick)), at(top_ + plot_height), rule, at(x(tick)), at(top_ + plot_height + 16), pale,
           significant(tick, 9));
    }
    line(R"(<path d="M{} {}h{}" stroke="{}"/><text x="{}" y="{}" text-anchor="middle" fill="{}">{}</text>)", at(left_),
         at(top_ + plot_height), at(plot_width_), rule, at(left_ + plot_width_ / 2), at(top_ + plot_height + 34), pale,
         escaped_html(chart_.x_label));
  }

  bool in_sight(const ReferenceLine& reference) const {
    return y(reference.value) >= top_ && y(reference.value) <= top_ + plot_height;
  }

  void refer(const ReferenceLine& reference) {
    line(R"(<path d="M{} {}h{}" stroke="{}" stroke-dasharray="5 4"/>)", at(left_), at(y(reference.value)),
         at(plot_width_), pale);
  }

  /// A place for the name of a reference line: at its left or right, above or below it.
  struct NamePlace {
    bool right = false;
    double left = 0, top = 0;  ///< of the text's box
    bool overlaps(double x, double y, double width) const {
      return x >= left - 6 && x <= left + width + 6 && y >= top && y <= top + name_height;
    }
  };

  /// How much of the curves a name would cover, in pixels; an end of one is what a reader looks for.
  std::size_t covered(const ChartPanel& panel, const NamePlace& place, double width) const {
    constexpr std::size_t weight_of_an_end = 1000;
    std::size_t count = 0;
    for (const ChartLine& drawn : panel.lines) {
      std::optional<std::pair<double, double>> last;
      for (std::size_t i = 0; i < panel.x.size(); ++i) {
        if (!std::isfinite(drawn.mean[i])) continue;
        const std::pair<double, double> next = {x(panel.x[i]), y(drawn.mean[i])};
        const std::pair<double, double> from = last.value_or(next);
        const double pixels = std::max(1.0, std::ceil(next.first - from.first));
        for (double pixel = 1; pixel <= pixels; ++pixel)
          if (place.overlaps(from.first + pixel / pixels * (next.first - from.first),
                             from.second + pixel / pixels * (next.second - from.second), width))
            ++count;
        last = next;
      }
      if (last && place.overlaps(last->first, last->second, width)) count += weight_of_an_end;
    }
    return count;
  }

  /// Above the lines of the panel, with a white rim, where it covers the least of them.
  void name_reference(const ChartPanel& panel, const ReferenceLine& reference) {
    const std::string text = fmt::format("{} {:.3f}", reference.name, reference.value);
    const double width = 6 * static_cast<double>(display_width(text)), at_line = y(reference.value);
    std::optional<NamePlace> best;
    std::size_t least = 0;
    for (const bool right : {reference.above, !reference.above})
      for (const bool above : {true, false}) {
        const NamePlace place{right, right ? left_ + plot_width_ - 4 - width : left_ + 4,
                              above ? at_line - 4 - name_height : at_line + 4};
        if (place.top < top_ || place.top + name_height > top_ + plot_height) continue;
        const std::size_t cost = covered(panel, place, width);
        if (best && cost >= least) continue;
        best = place;
        least = cost;
      }
    if (!best) return;  // no room at all
    line(
        R"(<text x="{}" y="{}" text-anchor="{}" fill="{}" stroke="#fff" stroke-width="3" paint-order="stroke">{}</text>)",
        at(best->right ? best->left + width : best->left), at(best->top + name_height - 3),
        best->right ? "end" : "start", pale, escaped_html(text));
  }

  void draw(const ChartPanel& panel, const ChartLine& drawn) {
    std::string middle, upper;
    std::vector<std::string> lower;
    for (std::size_t i = 0; i < panel.x.size(); ++i) {
      if (!std::isfinite(drawn.mean[i]) || (chart_.logarithmic && !(drawn.mean[i] > 0))) continue;
      const std::string place = at(x(panel.x[i]));
      middle += (middle.empty() ? "M" : "L") + place + ' ' + at(y(drawn.mean[i]));
      upper += (upper.empty() ? "M" : "L") + place + ' ' + at(y(drawn.high[i]));
      lower.push_back("L" + place + ' ' + at(y(drawn.low[i])));
    }
    if (middle.empty()) return;
    const std::string_view colour = light_colour(drawn.ink);
    if (lower.size() > 1) {
      std::for_each(lower.rbegin(), lower.rend(), [&](const std::string& step) { upper += step; });
      line(R"(<path d="{}Z" fill="{}" fill-opacity=".16"/>)", upper, colour);
    }
    const std::string dashes = drawn.ink.dashed ? fmt::format(R"( stroke-dasharray="{}")", ink_dashes) : "";
    const std::string dot = lower.size() == 1 ? R"( stroke-linecap="round")" : "";  // one point: a dot
    line(R"(<path d="{}{}" fill="none" stroke="{}" stroke-width="{}" stroke-linejoin="round"{}{}/>)", middle,
         lower.size() == 1 ? "h0" : "", colour, lower.size() == 1 ? "5" : "1.75", dashes, dot);
    predict(panel, drawn.predicted_low, colour);
    if (drawn.predicted_high != drawn.predicted_low) predict(panel, drawn.predicted_high, colour);
  }

  /// One end of what theory gives.
  void predict(const ChartPanel& panel, const std::vector<double>& values, std::string_view colour) {
    std::string path;
    std::size_t points = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      path += (path.empty() ? "M" : "L") + at(x(panel.x[i])) + ' ' + at(y(values[i]));
      ++points;
    }
    if (points == 1) path += "m-4 0h8";  // a dash
    if (points > 0)
      line(R"(<path d="{}" fill="none" stroke="{}" stroke-width="1.1" stroke-dasharray="{}"/>)", path, colour,
           prediction_dashes);
  }

  /// Writes the names at the line ends; what ends off the scale is returned, and the panel's note.
  std::string names(const ChartPanel& panel) {
    std::vector<Name> inside;
    std::vector<std::string> outside;
    for (const ChartLine& drawn : panel.lines) {
      std::vector<std::size_t> there;
      for (std::size_t i = 0; i < panel.x.size(); ++i)
        if (std::isfinite(drawn.mean[i]) && !(chart_.logarithmic && !(drawn.mean[i] > 0))) there.push_back(i);
      if (there.empty()) continue;
      const std::size_t end = chart_.names_left ? there.front() : there.back();
      const double height = y(drawn.mean[end]);
      if (height < top_ - 1 || height > top_ + plot_height + 1)
        outside.push_back(fmt::format("{} {} {}, {} {}", height < top_ ? "↑" : "↓", drawn.name,
                                      number_text(drawn.mean[end], 3), chart_.x_name, significant(panel.x[end], 9)));
      else
        inside.push_back({height, &drawn});
    }
    spread(inside, top_ + 4, top_ + plot_height - 4);
    for (const Name& name : inside)
      line(R"(<text x="{}" y="{}" text-anchor="{}" font-weight="600" fill="{}">{}</text>)",
           at(chart_.names_left ? left_ - 7 : left_ + plot_width_ + 7), at(name.y + 4),
           chart_.names_left ? "end" : "start", light_colour(name.line->ink), escaped_html(shortened(name.line->name)));
    std::string off;
    for (std::size_t i = 0; i < outside.size(); ++i) {
      if (i > 0 && character * static_cast<double>(display_width(off + outside[i])) > plot_width_ + names_width_) {
        off += fmt::format(", {} more", outside.size() - i);
        break;
      }
      off += (i > 0 ? " " : "off scale ") + outside[i];
    }
    return off + (off.empty() || panel.note.empty() ? "" : "; ") + panel.note;
  }

  void titles(const ChartPanel& panel, const std::string& off) {
    const double widths =
        6.4 * static_cast<double>(display_width(panel.title)) + 6 * static_cast<double>(display_width(off));
    const bool one_line = off.empty() || widths < plot_width_ - 8;
    line(R"(<text x="{}" y="{}" font-weight="600">{}</text>)", at(left_), at(top_ - (one_line ? 12 : 18)),
         escaped_html(panel.title));
    if (off.empty()) return;
    line(R"(<text x="{}" y="{}" text-anchor="{}" fill="{}">{}</text>)", at(one_line ? left_ + plot_width_ : left_),
         at(top_ - (one_line ? 12 : 5)), one_line ? "end" : "start", pale, escaped_html(off));
  }

  /// A name that fits beside the plot.
  std::string shortened(const std::string& name) const {
    const auto most = static_cast<std::size_t>((names_width_ - 8) / character);
    if (display_width(name) <= most) return name;
    std::string text;
    std::size_t width = 0;
    for (const char c : name) {
      if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++width >= most) break;
      text += c;
    }
    return text + "…";
  }

  const Chart& chart_;
  std::string text_;
  double names_width_ = 0, column_width_ = 0, plot_width_ = 0;
  std::size_t columns_ = 1;
  double left_ = 0, top_ = 0, first_x_ = 0, last_x_ = 1;  // of the panel that is being drawn
};

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  if (!(high > low)) return ticks;
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.99) {
      step = factor * power;
      break;
    }
  for (double k = std::ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9) + 1e-300; ++k) ticks.push_back(k * step);
  return ticks;
}

std::vector<double> decade_ticks(double low, double high) {
  const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  const int by = std::max(1, (last - first + 6) / 7);
  std::vector<double> ticks;
  for (int exponent = first; exponent <= last; exponent += by) ticks.push_back(std::pow(10, exponent));
  return ticks;
}

std::string svg(const Chart& chart) { return Drawing(chart).text(); }

}  // namespace gradflow
