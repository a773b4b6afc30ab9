#pragma once

#include <span>
#include <string>
#include <vector>

#include "claims/verdict_table.h"

namespace gradflow {

/// A row of a picture of verdicts.
struct VerdictStrip {
  const ClaimOutcome* outcome;
  std::string remark;  ///< a second line under the statement; may be empty
};

/// Verdicts as one static picture, a row a claim with an axis of its own: where the number must lie for `reproduced`
/// and for `refuted`, the number of each seed, their mean with its 95 % interval. White ground, as svg() of
/// svg_chart.h; `id` is a word that keeps names apart from those of another picture in the same page.
std::string verdict_svg(const std::string& id, const std::string& title, std::span<const VerdictStrip> strips);

/// One picture of a folder of claims.
struct ClaimPicture {
  std::string file;   ///< "topic-learning-rate.svg"
  std::string title;  ///< the topic, or what the literature disagrees about
  std::string svg;
};
/// One for each topic.
std::vector<ClaimPicture> topic_pictures(std::span<const ClaimOutcome> outcomes);
/// One for each conflict of the literature: its positions, each with the quantity that it means.
std::vector<ClaimPicture> dispute_pictures(std::span<const ClaimOutcome> outcomes);

}  // namespace gradflow
