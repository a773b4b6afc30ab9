#include "report/claim_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numbers.h"
#include "report/html.h"

namespace gradflow {
namespace {

// Pixels.
constexpr double width = 760, left = 176, right = 730, heading = 54, text_line = 15, strip_height = 16,
                 below_strip = 26, character = 5.6;
constexpr std::string_view ink = "#1a1d21", pale = "#565d67", rule = "#9aa2ac";

std::string at(double value) {
  std::string text = fmt::format("{:.1f}", value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

/// Cut where it would leave the picture.
std::string fitting(const std::string& text, double room) {
  const auto most = static_cast<std::size_t>(room / character);
  std::size_t letters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (++letters == most) return text.substr(0, i) + "…";
  }
  return text;
}

/// ● reproduced, ✕ refuted, ▼ not reproduced, ◐ undecided: shapes, as hues mean groups. `y` is the text's base line.
std::string mark(ClaimVerdict verdict, double x, double y) {
  const std::string middle = at(y - 4);
  switch (verdict) {
    case ClaimVerdict::reproduced: return fmt::format(R"(<circle cx="{}" cy="{}" r="4"/>)", at(x), middle);
    case ClaimVerdict::refuted:
      return fmt::format(R"(<path d="M{0} {2}l7 7m0 -7l-7 7" stroke="{1}" stroke-width="1.8"/>)", at(x - 3.5), ink,
                         at(y - 7.5));
    case ClaimVerdict::not_reproduced: return fmt::format(R"(<path d="M{} {}h8l-4 7z"/>)", at(x - 4), at(y - 7.5));
    case ClaimVerdict::undecided:
      return fmt::format(R"(<circle cx="{0}" cy="{1}" r="3.6" fill="none" stroke="{2}" stroke-width="1.2"/>)"
                         R"(<path d="M{0} {3}a3.6 3.6 0 0 0 0 7.2z"/>)",
                         at(x), middle, ink, at(y - 7.6));
  }
  return "";
}

/// Where the numbers of a claim stand on its strip.
class Axis {
 public:
  explicit Axis(const ClaimOutcome& outcome) {
    std::vector<double> points = outcome.results();
    if (outcome.judgement.interval)
      points.insert(points.end(), {outcome.judgement.interval->low, outcome.judgement.interval->high});
    for (const Region* region : {&outcome.claim->criterion.reproduced, &outcome.claim->criterion.refuted})
      for (const auto& [low, high] : region->pieces())
        for (const double bound : {low, high})
          if (std::isfinite(bound)) points.push_back(bound);
    std::erase_if(points, [](double point) { return !std::isfinite(point); });
    const auto [least, most] = std::minmax_element(points.begin(), points.end());
    // Ratios and errors span decades.
    logarithmic_ = *least > 0 && *most > 50 * *least;
    low_ = scaled(*least);
    high_ = scaled(*most);
    const double edge = high_ > low_ ? 0.12 * (high_ - low_) : std::max(0.5, std::abs(low_) * 0.1);
    low_ -= edge;
    high_ += edge;
  }

  double x(double value) const {
    if (logarithmic_ && !(value > 0)) return left;
    return std::clamp(left + (right - left) * (scaled(value) - low_) / (high_ - low_), left, right);
  }

 private:
  double scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }

  bool logarithmic_ = false;
  double low_ = 0, high_ = 1;
};

/// Draws one picture.
class Drawing {
 public:
  explicit Drawing(std::string id) : id_(std::move(id)) {}

  std::string text(const std::string& title, std::span<const VerdictStrip> strips) {
    std::string told;
    for (const VerdictStrip& each : strips) {
      strip(each);
      told += fmt::format("{}: {}, {} {}. ", each.outcome->claim->id, name_of(each.outcome->judgement.verdict),
                          value_text(each.outcome->judgement.value), interval_text(each.outcome->judgement));
    }
    return fmt::format(
        R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" )svg"
        R"svg(aria-labelledby="{2}-t {2}-d" font-family="Helvetica, Arial, 'Liberation Sans', sans-serif" )svg"
        R"svg(font-size="11.5" fill="{3}"><title id="{2}-t">{4}</title><desc id="{2}-d">{5}</desc>)svg"
        R"svg(<defs><pattern id="{2}-h" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">)svg"
        R"svg(<rect width="2" height="6" fill="{6}"/></pattern></defs><rect width="{0}" height="{1}" fill="#fff"/>)svg"
        "\n"
        R"svg(<text x="14" y="22" font-size="14" font-weight="600">{4}</text>)svg"
        R"svg(<rect x="14" y="31" width="18" height="9" fill="#d3d9e0"/><text x="37" y="40" fill="{7}">reproduced here</text>)svg"
        R"svg(<rect x="130" y="31" width="18" height="9" fill="url(#{2}-h)"/><text x="153" y="40" fill="{7}">refuted here</text>)svg"
        R"svg(<circle cx="234" cy="36" r="2.6" fill="#fff" stroke="{3}" stroke-width="1.2"/><text x="242" y="40" fill="{7}">a seed</text>)svg"
        R"svg(<path d="M290 36h26M303 31v10" stroke="{3}" stroke-width="2"/><text x="322" y="40" fill="{7}">mean and 95 % interval</text>)svg"
        "\n{8}</svg>\n",
        at(width), at(top_ + 4), id_, ink, escaped_html(title), escaped_html(told), rule, pale, text_);
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
  }

  void strip(const VerdictStrip& each) {
    const ClaimOutcome& outcome = *each.outcome;
    const Claim& claim = *outcome.claim;
    const double id_end = 24 + character * 1.1 * static_cast<double>(claim.id.size()), start = std::max(left, id_end);
    top_ += text_line;
    add(R"(<text x="14" y="{}"><tspan font-weight="600">{}</tspan><tspan x="{}">{}</tspan></text>)", at(top_),
        escaped_html(claim.id), at(start), escaped_html(fitting(claim.statement, width - 10 - start)));
    if (!each.remark.empty()) {
      top_ += text_line;
      add(R"(<text x="{}" y="{}" fill="{}">{}</text>)", at(left), at(top_), pale,
          escaped_html(fitting(each.remark, right - left)));
    }
    top_ += 6;
    frame();
    const double base = top_ + strip_height - 4;
    add(R"({}<text x="30" y="{}">{}</text>)", mark(outcome.judgement.verdict, 20, base), at(base),
        name_of(outcome.judgement.verdict));
    numbers(outcome);
    top_ += strip_height + below_strip;
    text_ += '\n';
  }

  void frame() {
    add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="{}" stroke-width=".6"/>)", at(left), at(top_),
        at(right - left), at(strip_height), rule);
  }

  void numbers(const ClaimOutcome& outcome) {
    const Axis axis(outcome);
    std::vector<double> bounds;
    const auto shade = [&](const Region& region, std::string_view fill) {
      for (const auto& [low, high] : region.pieces()) {
        const double from = std::isfinite(low) ? axis.x(low) : left, to = std::isfinite(high) ? axis.x(high) : right;
        add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>)", at(from), at(top_),
            at(std::max(1.5, to - from)), at(strip_height), fill);
        for (const double bound : {low, high})
          if (std::isfinite(bound)) bounds.push_back(bound);
      }
    };
    shade(outcome.claim->criterion.reproduced, "#d3d9e0");
    shade(outcome.claim->criterion.refuted, fmt::format("url(#{}-h)", id_));
    const double middle = top_ + strip_height / 2;
    double mean_x = (left + right) / 2;
    if (outcome.judgement.value && outcome.judgement.interval) {
      mean_x = axis.x(*outcome.judgement.value);
      add(R"(<path d="M{} {}H{}M{} {}v{}" stroke="{}" stroke-width="2"/>)", at(axis.x(outcome.judgement.interval->low)),
          at(middle), at(axis.x(outcome.judgement.interval->high)), at(mean_x), at(top_ - 2), at(strip_height + 4),
          ink);
    }
    for (const double value : outcome.results())
      if (std::isfinite(value))
        add(R"(<circle cx="{}" cy="{}" r="2.6" fill="#fff" stroke="{}" stroke-width="1.2"/>)", at(axis.x(value)),
            at(middle), ink);
    labels(outcome, axis, mean_x, bounds);
  }

  /// The value under the strip, and each bound that has room beside it and beside the others.
  void labels(const ClaimOutcome& outcome, const Axis& axis, double mean_x, std::vector<double>& bounds) {
    const double y = top_ + strip_height + 12;
    std::vector<std::pair<double, double>> taken;
    const auto write = [&](double x, const std::string& text, std::string_view fill, std::string_view weight) {
      const double half = character * static_cast<double>(text.size()) / 2 + 3;
      x = std::clamp(x, left + half - 20, right - half + 24);
      for (const auto& [from, to] : taken)
        if (x - half < to && x + half > from) return;
      taken.emplace_back(x - half, x + half);
      add(R"(<text x="{}" y="{}" text-anchor="middle" font-size="10.5" fill="{}" font-weight="{}">{}</text>)", at(x),
          at(y), fill, weight, escaped_html(text));
    };
    write(mean_x, outcome.judgement.value ? value_text(outcome.judgement.value) : "no number", ink, "600");
    std::sort(bounds.begin(), bounds.end());
    for (const double bound : bounds) write(axis.x(bound), significant(bound, 3), pale, "400");
  }

  std::string id_;
  double top_ = heading;
  std::string text_;
};

}  // namespace

std::string verdict_svg(const std::string& id, const std::string& title, std::span<const VerdictStrip> strips) {
  return Drawing(id).text(title, strips);
}

std::vector<ClaimPicture> topic_pictures(std::span<const ClaimOutcome> outcomes) {
  std::vector<ClaimPicture> pictures;
  for (const std::string& topic : topics_of(outcomes)) {
    std::vector<VerdictStrip> strips;
    for (const ClaimOutcome& outcome : outcomes)
      if (outcome.claim->topic == topic) strips.push_back({&outcome, ""});
    const std::string name = topic_word(topic);
    pictures.push_back({name + ".svg", topic, verdict_svg(name, topic, strips)});
  }
  return pictures;
}

std::vector<ClaimPicture> dispute_pictures(std::span<const ClaimOutcome> outcomes) {
  std::vector<ClaimPicture> pictures;
  for (const ClaimDispute& dispute : disputes(outcomes)) {
    std::vector<VerdictStrip> strips;
    for (const ClaimOutcome* outcome : dispute.positions)
      strips.push_back({outcome, "means " + outcome->claim->conflict.quantity});
    const std::string name = dispute_word(dispute.about);
    pictures.push_back({name + ".svg", dispute.about, verdict_svg(name, dispute.about, strips)});
  }
  return pictures;
}

}  // namespace gradflow
