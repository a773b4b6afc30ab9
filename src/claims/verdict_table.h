#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "claims/outcome.h"
#include "output/table.h"

namespace gradflow {

// The folder of claims: claims.md and claims.csv with a row for each claim, numbers/ID.csv with what its verdict
// follows from, run by run.

std::span<const Column> claims_columns();

/// A row of claims.csv with all that a verdict can be written again from.
struct VerdictRow {
  std::string id, verdict, length, file, checksum, reason, command;
  std::optional<double> value, low, high;
  std::int64_t seeds = 0;
  double seconds = 0;
};

/// The rows of claims.csv. Throws Error naming the file when it cannot be read or is that of another version.
std::vector<VerdictRow> read_verdicts(const std::string& path);

/// What a folder says of claims that were not asked for now.
struct EarlierOutcomes {
  std::deque<Claim> claims;            ///< that the outcomes point to
  std::vector<ClaimOutcome> outcomes;  ///< whose claim file, base and numbers are still the same
  std::vector<std::string> dropped;    ///< "ID: why its row is left out; what to do"
};
EarlierOutcomes earlier_outcomes(const std::string& folder, std::span<const ClaimOutcome> replaced);

/// Both together, by the names of their claims.
std::vector<ClaimOutcome> joined(std::span<const ClaimOutcome> now, std::span<const ClaimOutcome> earlier);

/// The verdict table as Markdown: statements, sources, numbers and where they come from. Links are those of a file in
/// `folder`.
std::string outcomes_markdown(std::span<const ClaimOutcome> outcomes, const std::string& folder);

/// Writes claims.md, claims.csv and numbers/ID.csv into the folder.
void write_outcomes(std::span<const ClaimOutcome> outcomes, const std::string& folder);

/// The positions about each thing that the literature disagrees about, in the order in which they come.
struct ClaimDispute {
  std::string about;
  std::vector<const ClaimOutcome*> positions;
};
std::vector<ClaimDispute> disputes(std::span<const ClaimOutcome> outcomes);

/// Each topic once, in the order in which they come.
std::vector<std::string> topics_of(std::span<const ClaimOutcome> outcomes);

/// The name of the picture of a topic, and of that of a conflict: pictures/WORD.svg.
std::string topic_word(const std::string& topic);
std::string dispute_word(const std::string& about);

/// The commands that made the rows: "`gradflow claims run --all`", with how many each made where there are several.
std::string made_by(std::span<const ClaimOutcome> outcomes);

/// Whether the verdict is open, or another than the literature lets expect.
bool is_remarkable(const ClaimOutcome& outcome);

/// From a file in `folder` to another file, as a link.
std::string link_from(const std::string& folder, const std::string& file);

}  // namespace gradflow
