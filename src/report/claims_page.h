#pragma once

#include <span>
#include <string>

#include "claims/verdict_table.h"
#include "report/assets.h"

namespace gradflow {

/// The verdicts of a folder of claims as one page that opens from disk, without script: where the literature
/// disagrees, position beside position; every topic with its picture and its table; what is undecided, and why. Links
/// are those of a file in `folder`.
std::string claims_page(std::span<const ClaimOutcome> outcomes, const std::string& folder, const ReportAssets& assets);

/// Writes that page as index.html, and pictures/*.svg, into the folder; pictures of topics that are gone go too.
void write_claims_report(std::span<const ClaimOutcome> outcomes, const std::string& folder);

}  // namespace gradflow
