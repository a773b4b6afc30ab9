#include "report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/statistics.h"
#include "report/cell_numbers.h"
#include "report/html.h"
#include "report/number_text.h"
#include "report/settings_words.h"

namespace gradflow {
namespace {

constexpr std::size_t most_findings = 8;
constexpr double tenfold = 10;

/// A cell with its numbers.
struct Measured {
  const ReportCell* cell = nullptr;
  CellNumbers numbers;
};

/// Writes the findings of one study.
class Writer {
 public:
  explicit Writer(const Report& report) : report_(report) {
    for (const ReportCell& cell : report.cells) cells_.push_back({&cell, numbers_of(report, cell)});
  }

  std::vector<Finding> findings() {
    learned();
    lowest_loss();
    learning();
    stuck();
    vanishing();
    diverged();
    not_below();
    spike();
    growing();
    return within_limit();
  }

 private:
  using Cells = std::vector<const Measured*>;

  /// The cells of a group that fulfil a condition.
  Cells cells_of(std::size_t group, const std::function<bool(const Measured&)>& condition) const {
    Cells cells;
    for (const Measured& measured : cells_)
      if (measured.cell->group == group && condition(measured)) cells.push_back(&measured);
    return cells;
  }
  Cells cells_ending(std::size_t group, Outcome outcome) const {
    return cells_of(group, [&](const Measured& measured) { return measured.numbers.majority() == outcome; });
  }
  std::string where(const Cells& cells) const {
    std::vector<const ReportCell*> plain;
    for (const Measured* measured : cells) plain.push_back(measured->cell);
    return settings_words(report_, plain);
  }
  const std::string& label(std::size_t group) const { return report_.groups[group].label; }
  const std::string& label(const Measured& measured) const { return label(measured.cell->group); }

  /// "in 3 of 3 seeds", "in 3 of 3 seeds each", "in 10 of 12 runs".
  static std::string seeds_words(const Cells& cells, Outcome outcome) {
    std::size_t ended = 0, seeds = 0;
    bool same = true;
    for (const Measured* measured : cells) {
      ended += measured->numbers.count(outcome);
      seeds += measured->numbers.seeds;
      same = same && measured->numbers.seeds == cells.front()->numbers.seeds &&
             measured->numbers.count(outcome) == cells.front()->numbers.count(outcome);
    }
    if (!same) return fmt::format("in {} of {} runs", ended, seeds);
    const CellNumbers& one = cells.front()->numbers;
    const std::string each = cells.size() > 1 ? " each" : "";
    if (one.seeds == 1) return "1 seed" + each;
    return fmt::format("in {} of {} seeds{}", one.count(outcome), one.seeds, each);
  }

  /// "1.50 to 1.84": a loss over those runs of the cells that ended so.
  std::string loss_range(const Cells& cells, Outcome outcome, std::optional<double> ReportRun::*loss,
                         int digits) const {
    double low = INFINITY, high = -INFINITY;
    for (const Measured* measured : cells)
      for (const std::size_t index : measured->cell->runs) {
        const ReportRun& run = report_.runs[index];
        if (run.outcome != outcome || !(run.*loss)) continue;
        low = std::min(low, *(run.*loss));
        high = std::max(high, *(run.*loss));
      }
    return range_text(low, high, digits);
  }

  /// The reference lines that all panels of these cells share: "entropy rate 1.213, unigram entropy 3.950".
  std::string references(const Cells& cells, bool highest_only) const {
    const std::vector<ReferenceLine>& lines = report_.panels[cells.front()->cell->panel].lines;
    std::vector<std::string> words;
    for (const ReferenceLine& line : lines) {
      const bool everywhere = std::all_of(cells.begin(), cells.end(), [&](const Measured* measured) {
        const auto& others = report_.panels[measured->cell->panel].lines;
        return std::any_of(others.begin(), others.end(), [&](const ReferenceLine& other) {
          return other.name == line.name && other.value == line.value;
        });
      });
      if (everywhere && (!highest_only || &line == &lines.back()))
        words.push_back(fmt::format("{} {:.3f}", line.name, line.value));
    }
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }
  std::string reference_name() const {
    for (const ReportPanel& panel : report_.panels)
      if (!panel.lines.empty()) return panel.lines.back().name;
    return "unigram entropy";
  }

  void add(int kind, Finding finding) { by_kind_[kind].push_back(std::move(finding)); }

  void learned() {
    // Groups that learn in the same places share a sentence.
    struct Place {
      std::vector<std::size_t> groups;
      Cells cells;
    };
    std::map<std::string, Place> places;
    for (std::size_t g = 0; g < report_.groups.size(); ++g) {
      const Cells cells = cells_ending(g, Outcome::learned);
      if (cells.empty()) continue;
      Place& place = places[where(cells)];
      place.groups.push_back(g);
      place.cells.insert(place.cells.end(), cells.begin(), cells.end());
    }
    std::vector<std::pair<std::string, Place>> sorted(places.begin(), places.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.cells.size() > b.second.cells.size(); });
    for (const auto& [words, place] : sorted) {
      std::vector<std::string> names;
      for (const std::size_t group : place.groups) names.push_back(label(group));
      const std::string lines = references(place.cells, false);
      add(1, {.claim = fmt::format("{} learn{} {}", listed(names), names.size() == 1 ? "s" : "", words),
              .text = fmt::format(", {}: final loss {} {}{}.", seeds_words(place.cells, Outcome::learned),
                                  loss_range(place.cells, Outcome::learned, &ReportRun::final_loss, 3),
                                  report_.loss_unit, lines.empty() ? "" : " (" + lines + ")"),
              .section = "loss",
              .choice = place.cells.front()->cell->choice});
    }
  }

  void lowest_loss() {
    Cells ended;
    for (const Measured& measured : cells_)
      if (!measured.numbers.final_losses.empty() && measured.numbers.diverged_at.empty()) ended.push_back(&measured);
    if (ended.size() < 2) return;
    const auto loss = [](const Measured* measured) { return *mean(measured->numbers.final_losses); };
    std::stable_sort(ended.begin(), ended.end(),
                     [&](const Measured* a, const Measured* b) { return loss(a) < loss(b); });
    const Measured& best = *ended.front();
    const auto other_group = std::find_if(ended.begin() + 1, ended.end(), [&](const Measured* measured) {
      return measured->cell->group != best.cell->group;
    });
    const Measured& next = other_group != ended.end() ? **other_group : *ended[1];
    const bool placements = report_.group_axis.name == "placement" && other_group != ended.end();
    const std::string relation = placements ? "the best of another placement is" : "the next is";
    add(2, {.claim = fmt::format("Lowest final loss: {}{}", label(best), cell_words(report_, *best.cell)),
            .text = fmt::format(", {}; {} {}{}, {}{}.", mean_text(best.numbers.final_losses).text(), relation,
                                label(next), cell_words(report_, *next.cell),
                                mean_text(next.numbers.final_losses).text(), difference(best, next)),
            .section = "table",
            .choice = best.cell->choice});
  }

  /// The difference between two cells over the seeds that both have; empty with fewer than three.
  std::string difference(const Measured& best, const Measured& next) const {
    std::vector<double> differences;
    for (const std::size_t a : best.cell->runs)
      for (const std::size_t b : next.cell->runs)
        if (report_.runs[a].seed == report_.runs[b].seed && report_.runs[a].final_loss && report_.runs[b].final_loss)
          differences.push_back(*report_.runs[b].final_loss - *report_.runs[a].final_loss);
    const std::optional<double> half = half_width(differences);
    if (!half) return {};
    const double average = *mean(differences);
    return fmt::format(" (difference seed by seed {} ± {}{})", number_text(average, 3), number_text(*half, 2),
                       std::abs(average) <= *half ? ": not told apart" : "");
  }

  void learning() {
    for (std::size_t g = 0; g < report_.groups.size(); ++g) {
      const Cells cells = cells_ending(g, Outcome::learning);
      if (cells.empty()) continue;
      const std::string line = references(cells, true);
      add(3, {.claim = fmt::format("{} is still learning {}", label(g), where(cells)),
              .text = fmt::format(", {}: final loss {}{}.", seeds_words(cells, Outcome::learning),
                                  loss_range(cells, Outcome::learning, &ReportRun::final_loss, 4),
                                  line.empty() ? "" : ", " + line),
              .section = "loss",
              .choice = cells.front()->cell->choice});
    }
  }

  void stuck() {
    for (std::size_t g = 0; g < report_.groups.size(); ++g) {
      const Cells cells = cells_ending(g, Outcome::stuck);
      if (cells.empty()) continue;
      const std::string line = references(cells, true);
      add(4, {.claim = fmt::format("{} is stuck at the {} {}", label(g), reference_name(), where(cells)),
              .text = fmt::format(", {}: final loss {}{}.", seeds_words(cells, Outcome::stuck),
                                  loss_range(cells, Outcome::stuck, &ReportRun::final_loss, 4),
                                  line.empty() ? "" : ", " + line),
              .section = "loss",
              .problem = true,
              .choice = cells.back()->cell->choice});
    }
  }

  void vanishing() {
    for (std::size_t g = 0; g < report_.groups.size(); ++g) {
      // With fewer than three seeds there is no verdict; a tenfold fall is told all the same, as what it is.
      const Cells cells = cells_of(g, [](const Measured& measured) {
        const DepthProfile& profile = measured.numbers.gradient;
        if (!measured.numbers.last_step_ratio || measured.numbers.count(Outcome::diverged) > 0) return false;
        return profile.verdict == ProfileVerdict::tenfold_falling ||
               (profile.verdict == ProfileVerdict::undecided && *measured.numbers.last_step_ratio < 1 / tenfold);
      });
      if (cells.empty()) continue;
      const Measured& steepest =
          **std::min_element(cells.begin(), cells.end(), [](const Measured* a, const Measured* b) {
            return *a->numbers.last_step_ratio < *b->numbers.last_step_ratio;
          });
      const CellNumbers& numbers = steepest.numbers;
      const bool decided = numbers.gradient.verdict != ProfileVerdict::undecided;
      const std::string words = cell_words(report_, *steepest.cell);
      std::string text =
          fmt::format(" A{}, step {}, {} after block 1 is {} of that after block {}", words.substr(2),
                      numbers.last_step, gradient_symbol(report_), number_text(numbers.last_step_ratio, 2),
                      report_.panels[steepest.cell->panel].depth);
      if (numbers.first_step_ratio && numbers.first_step != numbers.last_step)
        text += fmt::format(" (at step {}: {})", numbers.first_step, number_text(numbers.first_step_ratio, 2));
      if (decided) {
        const MeanInterval& rate = *numbers.gradient.rate.interval;
        text +=
            fmt::format("; rate {} ± {} a block.", signed_text(rate.mean), number_text((rate.high - rate.low) / 2, 2));
      } else {
        text += fmt::format("; {}, so undecided.", counted(numbers.seeds, "seed"));
      }
      add(5,
          {.claim = fmt::format("In {} the gradient {} towards the input.", label(g), decided ? "vanishes" : "falls"),
           .text = text,
           .section = "gradient",
           .problem = numbers.is_bad(),
           .choice = steepest.cell->choice});
    }
  }

  void diverged() {
    for (std::size_t g = 0; g < report_.groups.size(); ++g) {
      const Cells cells =
          cells_of(g, [](const Measured& measured) { return measured.numbers.count(Outcome::diverged) > 0; });
      if (cells.empty()) continue;
      std::int64_t from = cells.front()->numbers.diverged_at.front(), to = from;
      for (const Measured* measured : cells) {
        from = std::min(from, measured->numbers.diverged_at.front());
        to = std::max(to, measured->numbers.diverged_at.back());
      }
      const std::string steps =
          from == to ? fmt::format("at step {}", from) : fmt::format("at step {} to {}", from, to);
      const Measured& worst = **std::max_element(cells.begin(), cells.end(), [](const Measured* a, const Measured* b) {
        return a->numbers.first_step_ratio.value_or(0) < b->numbers.first_step_ratio.value_or(0);
      });
      const double ratio = worst.numbers.first_step_ratio.value_or(0);
      std::string text = fmt::format(", {}, {}", seeds_words(cells, Outcome::diverged), steps);
      if (ratio >= tenfold)
        text += fmt::format(
            ": the gradient explodes towards the input, {} after block 1 is {} times that after block {} at step {}.",
            gradient_symbol(report_), number_text(ratio, 2), report_.panels[worst.cell->panel].depth,
            worst.numbers.first_step);
      else
        text += first_nonfinite(*worst.cell) + ".";
      add(6, {.claim = fmt::format("{} diverges {}", label(g), where(cells)),
              .text = text,
              .section = ratio >= tenfold ? "gradient" : "loss",
              .problem = true,
              .choice = worst.cell->choice});
    }
  }

  /// ": the first value that is not finite arose in block 3, attention (seed 1)"; empty when no spike row says.
  std::string first_nonfinite(const ReportCell& cell) const {
    for (const std::size_t index : cell.runs)
      for (const SpikeRow& row : report_.runs[index].spikes)
        if (row.kind == EpisodeKind::nonfinite && row.first)
          return fmt::format(": the first sub-layer to move is {} (seed {})", place_words(row.first->name),
                             report_.runs[index].seed);
    return {};
  }

  void not_below() {
    for (std::size_t g = 0; g < report_.groups.size(); ++g) {
      const Cells cells = cells_ending(g, Outcome::worse);
      if (cells.empty()) continue;
      std::int64_t steps = 0;
      for (const Measured* measured : cells)
        for (const std::size_t run : measured->cell->runs) steps = std::max(steps, report_.runs[run].last_step());
      const std::string line = references(cells, true);
      add(7, {.claim = fmt::format("{} {} has not reached the {}", label(g), where(cells), reference_name()),
              .text = fmt::format(
                  " in {}, {}: loss {} at step 1, {} at the end{}.", counted(static_cast<std::size_t>(steps), "step"),
                  seeds_words(cells, Outcome::worse), loss_range(cells, Outcome::worse, &ReportRun::first_loss, 3),
                  loss_range(cells, Outcome::worse, &ReportRun::final_loss, 3), line.empty() ? "" : " (" + line + ")"),
              .section = "loss",
              .problem = true,
              .choice = cells.front()->cell->choice});
    }
  }

  void spike() {
    const auto found = std::find_if(report_.spikes.begin(), report_.spikes.end(), [](const ReportSpike& spike) {
      return spike.row.series == SpikeSeries::loss && spike.row.kind == EpisodeKind::spike;
    });
    if (found == report_.spikes.end()) return;
    const SpikeRow& row = found->row;
    const ReportRun& run = report_.runs[found->run];
    std::string text = fmt::format(", from {} to {}", number_text(row.level_before, 3), number_text(row.peak, 3));
    if (row.first)
      text += fmt::format("; {} moved first, its {} at step {} (score {}, threshold {})", place_words(row.first->name),
                          quantity_words(row.first->quantity), row.first->step, number_text(row.first->score, 3),
                          number_text(report_.records[found->run].config.record.spikes.threshold, 1));
    else
      text += "; no sub-layer moved before it";
    std::size_t episodes = 0;
    for (const ReportRun& each : report_.runs) episodes += each.spikes.size();
    add(8, {.claim = fmt::format("{}: the loss spiked at step {}", run_words(report_, run), row.peak_step),
            .text = text + fmt::format(". {} in all.", counted(episodes, "episode")),
            .section = "spikes",
            .problem = true,
            .choice = run.choice});
  }

  void growing() {
    // The group whose stream is largest after the last block, among those that did not fail.
    const Measured* most = nullptr;
    const Measured* steadiest = nullptr;
    const auto change = [](const Measured& measured) {
      return std::abs(std::log(measured.numbers.variance.ratio.mean.value_or(INFINITY)));
    };
    for (const Measured& measured : cells_) {
      if (!measured.numbers.last_variance || measured.numbers.is_bad()) continue;
      const bool grows = measured.numbers.variance.verdict == ProfileVerdict::tenfold_rising;
      if (grows && (most == nullptr || *measured.numbers.last_variance > *most->numbers.last_variance))
        most = &measured;
      if (steadiest == nullptr || change(measured) < change(*steadiest)) steadiest = &measured;
    }
    if (most == nullptr) return;
    std::vector<std::string> values;
    for (const Measured& measured : cells_)
      if (measured.cell->group == most->cell->group && measured.cell->choice == most->cell->choice &&
          measured.numbers.last_variance)
        values.push_back(number_text(measured.numbers.last_variance, 3) + " at " +
                         report_.panels[measured.cell->panel].label);
    std::string text =
        fmt::format(" Variance after the last block at step {}: {}", most->numbers.last_step, listed(values));
    if (steadiest != nullptr && steadiest->cell->group != most->cell->group)
      text += fmt::format("; {}{}: {}", label(*steadiest), cell_words(report_, *steadiest->cell),
                          number_text(steadiest->numbers.last_variance, 3));
    add(9, {.claim = fmt::format("In {} the stream grows with depth.", label(*most)),
            .text = text + ".",
            .section = "variance",
            .choice = most->cell->choice});
  }

  /// All of them while they are few; else of the kind that has most the last ones go.
  std::vector<Finding> within_limit() {
    std::size_t count = 0;
    for (const auto& [kind, findings] : by_kind_) count += findings.size();
    for (; count > most_findings; --count) {
      auto longest = by_kind_.begin();
      for (auto kind = by_kind_.begin(); kind != by_kind_.end(); ++kind)
        if (kind->second.size() >= longest->second.size()) longest = kind;
      longest->second.pop_back();
    }
    std::vector<Finding> findings;
    for (auto& [kind, of_kind] : by_kind_)
      for (Finding& finding : of_kind) findings.push_back(std::move(finding));
    return findings;
  }

  const Report& report_;
  std::vector<Measured> cells_;
  std::map<int, std::vector<Finding>> by_kind_;
};

}  // namespace

std::vector<Finding> findings_of(const Report& report) { return Writer(report).findings(); }

std::string_view section_words(std::string_view section) {
  if (section == "loss") return "loss curves";
  if (section == "gradient") return "gradient over depth";
  if (section == "table") return "table";
  if (section == "spikes") return "spikes";
  if (section == "variance") return "stream variance";
  return section;
}

std::string place_words(const SubLayerName& name) {
  const std::string sublayer = name.sublayer == "ffn" ? "feed-forward" : name.sublayer;
  if (sublayer == "final_norm") return "final norm";
  if (sublayer == "embedding" || sublayer == "stem" || sublayer == "head") return sublayer;
  return fmt::format("block {}, {}", name.layer, sublayer);
}

std::string_view quantity_words(LayerQuantity quantity) {
  return quantity == LayerQuantity::grad_norm ? "gradient norm" : "update ratio";
}

std::string findings_html(const std::vector<Finding>& findings, bool with_further_axes) {
  std::string html = R"(<ul class="findings">)";
  for (const Finding& finding : findings) {
    std::string choice;
    for (const std::size_t value : finding.choice) choice += (choice.empty() ? "" : " ") + std::to_string(value);
    html += fmt::format(R"(<li{}><b>{}</b>{} <a href="#{}"{}>{}</a></li>)", finding.problem ? R"( class="warn")" : "",
                        escaped_html(finding.claim), escaped_html(finding.text), finding.section,
                        with_further_axes ? fmt::format(R"( data-choice="{}")", choice) : "",
                        section_words(finding.section));
    html += '\n';
  }
  if (findings.empty()) html += "<li>None: no run came to its end.</li>";
  return html + "</ul>";
}

std::string findings_markdown(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += fmt::format("- **{}**{}\n", escaped_markdown(finding.claim), escaped_markdown(finding.text));
  return text.empty() ? "None: no run came to its end.\n" : text;
}

}  // namespace gradflow
