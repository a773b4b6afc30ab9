// The tables in README.md are generated: each stands between <!-- NAME:begin --> and <!-- NAME:end -->.
// After a change: GRADFLOW_UPDATE_README=1 scripts/test -R Readme

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>

#include "analysis/comparison.h"
#include "claims/operators.h"
#include "claims/statistic.h"
#include "claims/verdict_table.h"
#include "config/compatibility.h"
#include "config/quantities.h"
#include "config/schema.h"
#include "core/files.h"
#include "output/run_folder.h"
#include "output/runs_table.h"
#include "output/table.h"

namespace gradflow {
namespace {

struct Block {
  const char* name;
  std::function<std::string()> text;
};

std::string files_table() {
  std::string table = "| file | content |\n| --- | --- |\n";
  for (const RunFile& file : run_files())
    table += "| `" + std::string(file.name) + "` | " + std::string(file.content) + " |\n";
  return table;
}

std::string comparison_table() {
  std::string table = "| column | over the runs of a row |\n| --- | --- |\n";
  for (const ComparisonColumn& column : comparison_columns())
    table += "| `" + std::string(column.name) + "` | " + std::string(column.meaning) + " |\n";
  return table;
}

std::optional<MeanInterval> interval_of(const VerdictRow& row) {
  if (!row.low || !row.high) return std::nullopt;
  return MeanInterval{row.value.value_or(0), *row.low, *row.high};
}

/// The claims that README.md names in a line "<!-- verdicts of: ID ID … -->", as results/claims has them.
std::string verdicts_table() {
  const std::string readme = read_file("README.md"), start = "<!-- verdicts of: ";
  const std::size_t from = readme.find(start) + start.size();
  std::istringstream ids(readme.substr(from, readme.find(" -->", from) - from));
  const std::vector<VerdictRow> rows = read_verdicts("results/claims/claims.csv");
  std::string table = "| claim | criterion | verdict | value | 95 % interval |\n| --- | --- | --- | --- | --- |\n";
  std::vector<std::string> commands;
  for (std::string id; ids >> id;) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const VerdictRow& each) { return each.id == id; });
    if (row == rows.end()) {
      ADD_FAILURE() << "results/claims/claims.csv has no verdict on " << id;
      continue;
    }
    if (std::find(commands.begin(), commands.end(), row->command) == commands.end()) commands.push_back(row->command);
    const std::string path = "configs/claims/" + id + ".json";
    const Claim claim = load_claim(path);
    const ClaimJudgement judgement{.value = row->value, .interval = interval_of(*row)};
    table += fmt::format("| {} ([{}]({})) | {} | {} | {} | {} |\n", claim.statement, id, path, claim.criterion.words(),
                         row->verdict, value_text(row->value), interval_text(judgement));
  }
  table += "\nMade by";
  for (const std::string& command : commands) table += fmt::format(" `{}`", command);
  table += ".\n";
  return table;
}

class Readme : public ::testing::TestWithParam<Block> {};

TEST_P(Readme, HoldsTheGeneratedTable) {
  const std::string begin = std::string("<!-- ") + GetParam().name + ":begin -->\n";
  const std::string end = std::string("<!-- ") + GetParam().name + ":end -->";
  std::string readme = read_file("README.md");
  const std::size_t from = readme.find(begin), to = readme.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to) << "README.md lacks " << begin;
  const std::size_t start = from + begin.size();
  const std::string expected = GetParam().text();
  if (std::getenv("GRADFLOW_UPDATE_README") != nullptr) {
    readme.replace(start, to - start, expected);
    write_file_atomically("README.md", readme);
  }
  EXPECT_EQ(read_file("README.md").substr(start, expected.size() + end.size()), expected + end)
      << "bring it up to date with GRADFLOW_UPDATE_README=1 scripts/test -R Readme";
}

INSTANTIATE_TEST_SUITE_P(Tables, Readme,
                         ::testing::Values(Block{"keys", key_table}, Block{"compatibility", compatibility_table},
                                           Block{"files", files_table}, Block{"verdicts", verdicts_table},
                                           Block{"comparison", comparison_table}, Block{"statistics", statistics_table},
                                           Block{"operators", operators_table},
                                           Block{"steps", [] { return column_table(steps_columns()); }},
                                           Block{"layers", [] { return column_table(layers_columns()); }},
                                           Block{"spikes", [] { return column_table(spikes_columns()); }},
                                           Block{"tensors", [] { return column_table(tensors_columns()); }},
                                           Block{"runs", [] { return column_table(runs_columns()); }},
                                           Block{"quantities", [] { return column_table(quantities_columns()); }},
                                           Block{"on_demand", on_demand_table},
                                           Block{"probe", [] { return column_table(probe_columns()); }},
                                           Block{"timing", [] { return column_table(timing_columns()); }}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace gradflow
