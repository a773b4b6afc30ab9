#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/comparison_table.h"
#include "report/data_block.h"
#include "report/findings.h"
#include "report/html.h"
#include "report/matrix.h"
#include "report/number_text.h"
#include "report/pictures.h"
#include "report/probe_section.h"
#include "report/spike_table.h"
#include "report/table_html.h"
#include "report/what_was_run.h"

namespace gradflow {
namespace {

constexpr std::string_view theme_script =
    R"html(<script>if(matchMedia("(prefers-color-scheme: dark)").matches)document.documentElement.dataset.theme="dark"</script>)html";

/// Nothing may be loaded, whatever a name in the data says.
constexpr std::string_view policy =
    R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">)";

struct Option {
  std::string value;
  std::string label;
  std::string attributes = {};  ///< with a blank before them
};

std::string select_html(const std::string& attributes, const std::vector<Option>& options) {
  std::string html = fmt::format("<select {}>", attributes);
  for (const Option& option : options)
    html += fmt::format(R"(<option value="{}"{}>{}</option>)", escaped_html(option.value), option.attributes,
                        escaped_html(option.label));
  return html + "</select>";
}

/// Builds the page of one report.
class Page {
 public:
  Page(const Report& report, const ReportAssets& assets) : report_(report), assets_(assets) {
    if (!assets.interactive() && !report.runs.empty()) pictures_ = static_pictures(report);
    for (const ReportRun& run : report.runs) sublayers_ = std::max(sublayers_, run.sublayers);
  }

  /// All but the header, whose facts say what the data leaves out, and the data.
  std::string body() const {
    if (report_.runs.empty()) return probes() + left_out() + "</main>\n";
    return what_trains() + table() + bar() + loss() + gradient() + heat() + variance() + update() + spikes() +
           probes() + what_was_run() + "</main>\n";
  }

  std::string header(const std::string& thinned) const {
    std::string facts;
    for (const std::string& fact : header_facts(report_)) facts += "<span>" + escaped_html(fact) + "</span>";
    if (!thinned.empty()) facts += "<span>shown to keep the page small: " + escaped_html(thinned) + "</span>";
    std::string html = fmt::format("<header><h1>{}: {}</h1>\n<p class=\"meta\">{}</p>\n", escaped_html(report_.title),
                                   escaped_html(report_.question), facts);
    if (!report_.command.empty())
      html +=
          fmt::format(R"(<div class="command"><code>{}</code><button id="copy" class="noprint">copy</button></div>)",
                      escaped_html(report_.command));
    return html + "</header>\n<main>";
  }

  std::string head() const {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\" data-theme=\"light\"><head><meta charset=\"utf-8\">{}"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{}: gradflow "
        "report</title>\n{}\n"
        "<style>{}\n{}</style></head><body>\n",
        policy, escaped_html(report_.title), theme_script, assets_.chart_style, assets_.style);
  }

  std::string scripts(const std::string& data) const {
    std::string html;
    if (!report_.runs.empty())
      html =
          "<noscript><p class=\"bad\">The pictures need JavaScript. Findings and tables are complete without it, and "
          "the "
          "static pictures stand beside this file.</p></noscript>\n";
    html += R"(<script type="application/json" id="data">)" + data + "</script>\n";
    if (assets_.interactive() && !report_.runs.empty())
      html += fmt::format("<!--\n{}-->\n<script>{}</script>\n", assets_.chart_licence, assets_.chart_script);
    return html + fmt::format("<script>\n{}</script>\n</body></html>\n", assets_.script);
  }

 private:
  std::string section(const char* id, const std::string& heading, const std::string& note,
                      const std::string& content) const {
    return fmt::format("<section id=\"{}\">{}\n{}{}</section>\n", id, heading,
                       note.empty() ? "" : "<p class=\"note\">" + note + "</p>\n", content);
  }
  static std::string h2(const std::string& text, const char* id = nullptr) {
    return fmt::format("<h2{}>{}</h2>", id ? fmt::format(R"( id="{}")", id) : "", escaped_html(text));
  }

  /// The panels of a line picture: places for the script, or static pictures.
  std::string panels(const char* picture, const std::string& what) const {
    std::string html;
    if (!assets_.interactive()) {
      for (const Picture& each : pictures_)
        if (each.section == picture) {
          const std::string caption =
              each.choice.empty() ? "" : "<figcaption>" + escaped_html(each.choice) + "</figcaption>";
          html += fmt::format("<figure class=\"static\">{}{}</figure>\n", caption, each.svg);
        }
      return html;
    }
    for (std::size_t p = 0; p < report_.panels.size(); ++p) {
      const std::string label = escaped_html(capitalized(report_.panels[p].label));
      html += fmt::format(
          R"(<div class="panel"><h3>{0} <span class="note what">{1}</span><span class="off"></span></h3>)"
          R"(<div class="plot" tabindex="0" role="group" aria-label="{1}, {0}. Arrow keys move the cursor; the numbers follow below." )"
          R"(data-picture="{2}" data-panel="{3}"></div><div class="read" aria-live="polite"></div></div>)",
          label, escaped_html(what), picture, p);
    }
    return "<div class=\"panels\">" + html + "</div>";
  }

  static std::string capitalized(std::string text) {
    if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
  }

  std::string controls(const std::string& content) const {
    return assets_.interactive() && !content.empty() ? "<div class=\"controls\">" + content + "</div>" : "";
  }
  static std::string step_slider() {
    return R"(<label>step <input type="range" class="step" min="0" value="0"><output></output></label>)";
  }
  std::string sublayer_select(const char* word) const {
    if (sublayers_ < 2) return {};
    return fmt::format("<label>{} {}</label>", word,
                       select_html("class=\"sub\"", {{"last", "feed-forward"}, {"first", "attention"}}));
  }
  /// A choice of those quantities that were measured.
  std::vector<Option> quantity_options(std::initializer_list<std::string_view> names) const {
    std::vector<Option> options;
    for (const std::string_view name : names)
      if (report_.measured(name)) {
        const QuantityWords& words = words_of(name);
        options.push_back(
            {std::string(name), std::string(words.label), fmt::format(R"( data-title="{}")", words.question)});
      }
    return options;
  }

  std::string what_trains() const {
    return fmt::format(
        "<section class=\"answer{}\"><div><h2>What trains?</h2>{}</div><div><h2>Findings</h2>{}</div></section>\n",
        matrix_is_wide(report_) ? " wide" : "", matrix_html(report_),
        findings_html(findings_of(report_), !report_.axes.empty()));
  }

  std::string table() const {
    const std::string symbol(report_.measured("stream_grad_norm") ? "‖∂L/∂x‖" : "‖∂L/∂W‖ of a block");
    const std::string note = fmt::format(
        "Mean ± 95 % Student interval over seeds, from three seeds on; ratios and variances are geometric means. "
        "Gradient: {} "
        "after the first block divided by that after the last. Rate: slope of its logarithm for each block away from "
        "the output, "
        "at the last recorded step. Profile: vanishing or exploding where the interval of the change over the whole "
        "stack lies "
        "beyond tenfold; falling or rising where it excludes none; undecided below three seeds. A click on a heading "
        "sorts.",
        symbol);
    return section("table", h2("How do the " + plural(report_.group_axis.name) + " compare?"), note,
                   sortable_html(comparison_table(report_), "Comparison table"));
  }

  static std::string plural(const std::string& name) { return name.ends_with('s') ? name : name + "s"; }

  std::string bar() const {
    std::string html = R"(<div class="bar" role="toolbar" aria-label="What the pictures show">)";
    for (std::size_t g = 0; g < report_.groups.size() && report_.groups.size() > 1; ++g)
      html += fmt::format(
          R"(<button class="chip" aria-pressed="true" data-group="{}" title="Hide or show {} in all pictures; Shift-click shows it alone">{}</button>)",
          g, escaped_html(report_.groups[g].label), key_html(report_.groups[g]));
    if (!report_.axes.empty()) html += "<span class=\"setting printonly\"></span>";  // paper has no selects
    html += "\n<span class=\"end\">";
    for (std::size_t axis = 0; axis < report_.axes.size(); ++axis) {
      std::vector<Option> options;
      for (std::size_t i = 0; i < report_.axes[axis].values.size(); ++i)
        options.push_back({std::to_string(i), report_.axes[axis].values[i]});
      html += fmt::format("<label class=\"note\">{} {}</label>", escaped_html(report_.axes[axis].name),
                          select_html(fmt::format(R"(class="choice" data-axis="{}")", axis), options));
    }
    std::vector<std::int64_t> seeds;
    for (const ReportRun& run : report_.runs) seeds.push_back(run.seed);
    std::sort(seeds.begin(), seeds.end());
    seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
    if (seeds.size() > 1) {
      std::vector<Option> options = {{"all", "all"}};
      for (const std::int64_t seed : seeds) options.push_back({std::to_string(seed), std::to_string(seed)});
      html += "<label class=\"note\">seed " + select_html("id=\"seed\"", options) + "</label>";
    }
    html += "<label class=\"note\">colours " +
            select_html("id=\"theme\"", {{"auto", "auto"}, {"light", "light"}, {"dark", "dark"}}) + "</label>";
    return html + "</span></div>\n";
  }

  /// Whether the learning rate is not the same at all steps of all runs.
  bool learning_rate_varies() const {
    double first = -1;
    for (const ReportRun& run : report_.runs)
      for (const double rate : run.learning_rate) {
        if (first < 0) first = rate;
        if (rate != first) return true;
      }
    return false;
  }

  std::string loss() const {
    const std::string title = "Which runs learn, and how fast?";
    const std::string what = "training loss, " + report_.loss_unit;
    const auto words = [](const char* heading, const std::string& label) {
      return fmt::format(R"( data-title="{}" data-what="{}")", heading, escaped_html(label));
    };
    std::vector<Option> curves = {{"loss", "training loss", words(title.c_str(), what)}};
    if (report_.evaluated())
      curves.push_back({"eval_loss", "validation loss",
                        words("Does what was learned hold on other data?", "validation loss, " + report_.loss_unit)});
    curves.push_back({"grad_norm", "global gradient norm",
                      words("Where does the gradient norm jump?", "global gradient norm before clipping")});
    if (learning_rate_varies())
      curves.push_back(
          {"learning_rate", "learning rate", words("Which learning rate did each step use?", "learning rate")});
    const std::string selects = "<label>curve " + select_html("id=\"curve\"", curves) + "</label><label>scale " +
                                select_html("id=\"loss-scale\"", {{"linear", "linear"}, {"log", "logarithmic"}}) +
                                "</label>";
    const char* note =
        assets_.interactive()
            ? "Line: mean over seeds. Band: their range. Drag over a stretch to zoom, double-click or Escape to return."
            : "Line: mean over seeds. Band: their range.";
    return section("loss", h2(title, "losstitle"), note, controls(selects) + panels("loss", what));
  }

  std::string gradient() const {
    const std::vector<Option> options = quantity_options({"stream_grad_norm", "grad_norm"});
    if (options.empty()) return {};
    const std::string selects = step_slider() + "<label>shown " + select_html("id=\"gradient-quantity\"", options) +
                                "</label>" + sublayer_select("after");
    return section(
        "gradient", h2("Where does the gradient vanish?"),
        "The gradient flows from right to left, from the last block to the embedding: a line that falls to the left "
        "vanishes on its way. Geometric mean and range over seeds. The axis covers the runs that did not diverge." +
            not_recorded("stream_grad_norm"),
        controls(selects) + panels("gradient", options.front().label));
  }

  std::string not_recorded(std::string_view quantity) const {
    return report_.measured(quantity)
               ? ""
               : fmt::format(" The {} was not recorded (record.quantities).", words_of(quantity).label);
  }

  std::string heat() const {
    const std::vector<Option> options =
        quantity_options({"grad_norm", "stream_grad_norm", "stream_variance", "update_ratio", "branch_ratio"});
    if (options.empty()) return {};
    std::string tiles;
    for (std::size_t p = 0; p < report_.panels.size(); ++p) {
      tiles += fmt::format("<h3>{}</h3><div class=\"tiles\">", escaped_html(capitalized(report_.panels[p].label)));
      for (std::size_t g = 0; g < report_.groups.size(); ++g) {
        const auto here = [&](const ReportCell& cell) { return cell.group == g && cell.panel == p; };
        if (std::none_of(report_.cells.begin(), report_.cells.end(), here)) continue;
        tiles += fmt::format(
            R"(<div class="tile"><h3>{}</h3><canvas tabindex="0" role="img" aria-label="{}, {}: layer by step. Arrow keys move the cell." )"
            R"(data-panel="{}" data-group="{}"></canvas></div>)",
            key_html(report_.groups[g]), escaped_html(report_.groups[g].label), escaped_html(report_.panels[p].label),
            p, g);
      }
      tiles += "</div>\n";
    }
    std::string note =
        "One column a recorded step, one row a sub-layer, the embedding at the bottom, the head on top. Dark is small; "
        "beyond "
        "the scale the end colour stands. Geometric mean over seeds. Blank: not recorded, or the runs had stopped.";
    if (assets_.interactive()) note += " A click on a column moves the step slider there.";
    return section(
        "heat", h2(std::string(words_of(options.front().value).question), "heattitle"), note,
        "<div class=\"controls\"><label>colour " + select_html("id=\"heat-quantity\"", options) +
            "</label></div><div class=\"scale\"><canvas id=\"scale\" aria-hidden=\"true\"></canvas></div>"
            "<p id=\"heatread\" class=\"heatread\" aria-live=\"polite\"><span class=\"note\">Point at a cell for its "
            "number.</span></p>" +
            tiles);
  }

  std::string variance() const {
    if (!report_.measured("stream_variance")) return {};
    return section("variance", h2("Does the stream grow with depth?"),
                   "Variance over the features of one token, mean over tokens, after the sub-layer.",
                   controls(step_slider() + sublayer_select("after")) + panels("variance", "stream variance"));
  }

  std::string update() const {
    const std::vector<Option> options = quantity_options({"update_ratio", "branch_ratio"});
    if (options.empty()) return {};
    const std::string selects = step_slider() + "<label>shown " + select_html("id=\"update-quantity\"", options) +
                                "</label>" + sublayer_select("sub-layer");
    return section("update", h2("How far does each layer move in one step?"),
                   "Norm of the optimizer’s real step divided by the norm of the weights before it." +
                       not_recorded("branch_ratio"),
                   controls(selects) + panels("update", options.front().label));
  }

  std::string spikes() const {
    const SpikeConfig& settings = report_.records.front().config.record.spikes;
    const std::string note = fmt::format(
        "An episode starts when a value exceeds the median of the last {} by more than {} noise units. “Moved first”: "
        "the earliest "
        "sub-layer whose gradient norm or update ratio was flagged from ten steps before the episode to its peak. Runs "
        "that "
        "learned come first.",
        settings.level_window, number_text(settings.threshold, 1));
    return section("spikes", h2("What spiked, and which layer moved first?"), note,
                   spike_table_html(report_, assets_.interactive()));
  }

  std::string probes() const {
    if (report_.probes.empty()) return {};
    return section("probes", h2("Profiles at initialization"), escaped_html(probes_note()), probes_html(report_));
  }

  std::string left_out() const {
    if (report_.left_out.empty()) return {};
    std::string html = "<details><summary>Folders that were left out</summary><dl>";
    for (const LeftOut& each : report_.left_out)
      html += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped_html(each.path), escaped_html(each.reason));
    return html + "</dl></details>\n";
  }

  std::string what_was_run() const {
    return section(
        "config", h2("What exactly was run?"), "",
        formulas_html(report_) +
            fmt::format("\n<details><summary>Configuration common to all runs</summary><pre>{}</pre></details>\n{}",
                        escaped_html(common_configuration(report_)), left_out()) +
            R"(<details><summary>Definitions of verdicts and quantities</summary><dl>)"
            R"(<dt>learned</dt><dd>mean of the last 20 losses below the unigram entropy − 0.3</dd>)"
            R"(<dt>learning</dt><dd>below it by 0.05 to 0.3</dd>)"
            R"(<dt>stuck</dt><dd>within 0.05 of the unigram entropy: the loss of a model that knows only how frequent each symbol is</dd>)"
            R"(<dt>worse</dt><dd>above the unigram entropy + 0.05</dd>)"
            R"(<dt>diverged</dt><dd>stopped at a value that is not finite</dd>)"
            R"(<dt>‖∂L/∂x‖</dt><dd>Frobenius norm of the gradient of the mean loss with respect to the stream after the sub-layer (stream_grad_norm)</dd>)"
            R"(<dt>‖∂L/∂W‖</dt><dd>norm over the sub-layer’s parameters, before clipping (grad_norm)</dd>)"
            R"(<dt>branch ratio</dt><dd>RMS of the term that the branch adds, divided by the RMS of the stream that enters</dd></dl></details>)");
  }

  const Report& report_;
  const ReportAssets& assets_;
  std::vector<Picture> pictures_;  // static ones, where the script has no uPlot to draw with
  std::size_t sublayers_ = 1;
};

}  // namespace

std::string page_html(const Report& report, const ReportAssets& assets) {
  const Page page(report, assets);
  const std::string head = page.head(), body = page.body();
  const std::size_t rest = head.size() + body.size() + page.header("").size() + page.scripts("").size();
  const DataBlock data = data_block(report, rest);
  return head + page.header(data.thinned) + body + page.scripts(data.json);
}

}  // namespace gradflow
