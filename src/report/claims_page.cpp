#include "report/claims_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/files.h"
#include "report/claim_pictures.h"
#include "report/html.h"

namespace gradflow {
namespace {

constexpr std::string_view own_style =
    "figure{margin:0 0 12px;overflow-x:auto}figure svg{background:#fff;max-width:none}"
    ".scroll td.wrap{white-space:normal;min-width:220px}.scroll+h3{margin-top:28px}";

/// The claim's name, which leads to its file, above what it says: a column for each would not fit on a screen beside
/// the others.
std::string claim_cell(const std::string& folder, const Claim& claim) {
  return fmt::format(R"(<td class="wrap"><a href="{}">{}</a><br>{}</td>)", escaped_html(link_from(folder, claim.path)),
                     escaped_html(claim.id), escaped_html(claim.statement));
}

std::string verdict_cells(const ClaimOutcome& outcome) {
  return fmt::format(R"(<td><a href="numbers/{}.csv">{}</a>{}</td><td class="n">{}</td><td class="n">{}</td>)",
                     escaped_html(outcome.claim->id), name_of(outcome.judgement.verdict),
                     outcome.claim->length == ClaimLength::quick ? " <small>quick</small>" : "",
                     value_text(outcome.judgement.value), interval_text(outcome.judgement));
}

std::string table_html(const std::vector<std::string_view>& headings, const std::string& rows) {
  std::string html = R"(<div class="scroll"><table><thead><tr>)";
  for (const std::string_view heading : headings) html += fmt::format(R"(<th scope="col">{}</th>)", heading);
  return html + "</tr></thead><tbody>" + rows + "</tbody></table></div>\n";
}

std::string dispute_html(const ClaimDispute& dispute, const std::string& folder) {
  std::string rows;
  for (const ClaimOutcome* outcome : dispute.positions)
    rows += fmt::format(R"(<tr>{}<td class="wrap">{}</td><td class="wrap">{}</td>{}</tr>)",
                        claim_cell(folder, *outcome->claim), escaped_html(outcome->claim->source),
                        escaped_html(outcome->claim->conflict.quantity), verdict_cells(*outcome));
  return table_html({"position", "source", "quantity meant", "verdict", "value", "95 % interval"}, rows);
}

std::string topic_html(std::span<const ClaimOutcome> outcomes, const std::string& topic, const std::string& folder) {
  std::string rows;
  for (const ClaimOutcome& outcome : outcomes)
    if (outcome.claim->topic == topic)
      rows +=
          fmt::format(R"(<tr>{}<td class="wrap">{}</td>{}<td class="n">{}</td><td class="wrap">{}</td></tr>)",
                      claim_cell(folder, *outcome.claim), escaped_html(outcome.claim->source), verdict_cells(outcome),
                      outcome.judgement.seeds, escaped_html(outcome.claim->criterion.words()));
  return table_html({"claim", "source", "verdict", "value", "95 % interval", "seeds", "criterion"}, rows);
}

std::string remarkable_html(std::span<const ClaimOutcome> outcomes) {
  std::string items;
  for (const ClaimOutcome& outcome : outcomes)
    if (is_remarkable(outcome))
      items += fmt::format("<dt>{}: {}, expected {}</dt><dd>{}</dd>", escaped_html(outcome.claim->id),
                           name_of(outcome.judgement.verdict), name_of(outcome.claim->expected),
                           escaped_html(outcome.judgement.reason));
  if (items.empty()) return "";
  return "<section id=\"open\"><h2>What is undecided, or not as the literature lets expect?</h2><dl>" + items +
         "</dl></section>\n";
}

std::string without_ticks(std::string text) {
  std::erase(text, '`');
  return text;
}

}  // namespace

std::string claims_page(std::span<const ClaimOutcome> outcomes, const std::string& folder, const ReportAssets& assets) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\" data-theme=\"light\"><head><meta charset=\"utf-8\">"
      R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">)"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>Claims: gradflow "
      "report</title>\n<style>{}{}</style></head><body>\n<header><h1>Claims of the literature, as measured</h1>\n"
      R"(<p class="meta"><span>{} claims</span><span>{}</span></p><div class="command"><code>{}</code></div></header>)"
      "\n<main>",
      assets.style, own_style, outcomes.size(), count_of_verdicts(outcomes),
      escaped_html(without_ticks(made_by(outcomes))));
  const std::vector<ClaimDispute> conflicts = disputes(outcomes);
  const std::vector<ClaimPicture> sides = dispute_pictures(outcomes), topics = topic_pictures(outcomes);
  if (!conflicts.empty())
    html +=
        "<section id=\"conflicts\"><h2>Where does the literature disagree with itself?</h2>"
        "<p>Papers often mean different quantities by one word. Each position stands beside the others with the "
        "quantity that it means.</p>\n";
  for (std::size_t i = 0; i < conflicts.size(); ++i)
    html += fmt::format("<h3>{}</h3><figure>{}</figure>{}", escaped_html(conflicts[i].about), sides[i].svg,
                        dispute_html(conflicts[i], folder));
  if (!conflicts.empty()) html += "</section>\n";
  html += remarkable_html(outcomes);
  for (const ClaimPicture& topic : topics)
    html += fmt::format("<section><h2>{}</h2><figure>{}</figure>{}</section>\n", escaped_html(topic.title), topic.svg,
                        topic_html(outcomes, topic.title, folder));
  return html + "</main></body></html>\n";
}

void write_claims_report(std::span<const ClaimOutcome> outcomes, const std::string& folder) {
  std::vector<ClaimPicture> pictures = topic_pictures(outcomes);
  for (ClaimPicture& picture : dispute_pictures(outcomes)) pictures.push_back(std::move(picture));
  create_folders(folder + "/pictures");
  std::vector<std::string> gone;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/pictures")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".svg") && (name.starts_with("topic-") || name.starts_with("conflict-")) &&
        std::none_of(pictures.begin(), pictures.end(), [&](const auto& picture) { return picture.file == name; }))
      gone.push_back(entry.path().string());
  }
  for (const std::string& path : gone) remove_file(path);
  for (const ClaimPicture& picture : pictures) write_file_atomically(folder + "/pictures/" + picture.file, picture.svg);
  write_file_atomically(folder + "/index.html", claims_page(outcomes, folder, report_assets()));
}

}  // namespace gradflow
