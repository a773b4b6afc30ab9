#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace gradflow {

/// A sentence about the study with its numbers.
struct Finding {
  std::string claim;    ///< set off from the rest
  std::string text;     ///< goes on from the claim; plain text, not escaped
  std::string section;  ///< of the page that shows it: loss, gradient, table, …
  bool problem = false;
  std::vector<std::size_t> choice;  ///< setting of the further axes in which it is seen
};

/// What is worth knowing, in a fixed order: what learns, the lowest loss, what is still learning, what is stuck, where
/// gradients vanish, what diverges, what does not come down, the most telling spike, where the stream grows. At most
/// eight; a claim about a profile wants three seeds, else the numbers stand without one.
std::vector<Finding> findings_of(const Report& report);

/// The words of a section as a link: "loss curves".
std::string_view section_words(std::string_view section);

std::string findings_html(const std::vector<Finding>& findings, bool with_further_axes);
std::string findings_markdown(const std::vector<Finding>& findings);

/// "block 5, feed-forward", "embedding", "head".
std::string place_words(const SubLayerName& name);
/// "gradient norm", "update ratio".
std::string_view quantity_words(LayerQuantity quantity);

}  // namespace gradflow
