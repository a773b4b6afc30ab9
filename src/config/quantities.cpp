#include "config/quantities.h"

#include <algorithm>
#include <array>

namespace gradflow {
namespace {

using enum QuantitySet;

constexpr std::array quantities{
    Quantity{"grad_norm", standard},
    Quantity{"weight_norm", standard},
    Quantity{"update_norm", standard},
    Quantity{"update_ratio", standard},
    Quantity{"norm_input_rms", standard},
    Quantity{"stream_mean", standard},
    Quantity{"stream_variance", standard},
    Quantity{"stream_rms", standard},
    Quantity{"stream_grad_norm", standard},
    Quantity{"branch_rms", standard},
    Quantity{"branch_ratio", standard},
    Quantity{"nonfinite", standard},
    Quantity{"branch_cosine", all},
    Quantity{"branch_variance_gain", all, true},
    Quantity{"token_norm_cv", all},
    Quantity{"branch_norm_cv", all},
    Quantity{"mean_share", all},
    Quantity{"stream_grad_cosine", all},
    Quantity{"dual_rms", all},
    Quantity{"dual_grad_norm", all},
    Quantity{"skip_grad_share", all, true},
    Quantity{"attention_entropy", all, true},
    Quantity{"attention_logit_max", all, true},
    Quantity{"zero_fraction", all, true},
    Quantity{"angular_distance", all},
    Quantity{"token_diversity_db", all},
    Quantity{"output_change", on_demand},
    Quantity{"jacobian", on_demand},
    Quantity{"hessian", on_demand},
    Quantity{"snr", on_demand},
    Quantity{"snr_raw", on_demand},
    Quantity{"lesion", on_demand},
    Quantity{"cka", on_demand},
};

constexpr std::array<std::string_view, 3> words{"none", "standard", "all"};

}  // namespace

std::span<const Quantity> measured_quantities() { return quantities; }

const Quantity* find_quantity(std::string_view name) {
  const auto found =
      std::find_if(quantities.begin(), quantities.end(), [&](const Quantity& q) { return q.name == name; });
  return found == quantities.end() ? nullptr : &*found;
}

std::set<std::string_view> quantities_asked_for(std::span<const std::string> words) {
  std::set<std::string_view> names;
  for (const std::string& word : words)
    for (const Quantity& quantity : quantities)
      if (quantity.name == word || (quantity.set == standard && (word == "standard" || word == "all")) ||
          (quantity.set == all && word == "all"))
        names.insert(quantity.name);
  return names;
}

bool look_inside(std::span<const std::string> words) {
  const std::set<std::string_view> names = quantities_asked_for(words);
  return std::any_of(names.begin(), names.end(), [](std::string_view name) { return find_quantity(name)->inside; });
}

std::span<const std::string_view> quantity_words() { return words; }

}  // namespace gradflow
