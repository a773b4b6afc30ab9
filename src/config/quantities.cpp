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
    Quantity{"output_change", on_demand, false, "RMS change of the logits since the initial weights"},
    Quantity{"jacobian", on_demand, false,
             "of ∂x_N/∂x_0, from behind the embedding to behind the last block: `jacobian_sigma_max`, its largest "
             "singular value over the batch (to about 1e-3), and `jacobian_rms_gain`, the RMS that white noise of RMS "
             "1 comes out with (8 random vectors)"},
    Quantity{"hessian", on_demand, false,
             "of the loss over all parameters: `hessian_lambda_max` (to about 1e-3), `hessian_trace` (Hutchinson, 16 "
             "random vectors) and, once Adam has a second moment v̂, `hessian_preconditioned_lambda_max` of P^-½HP^-½ "
             "with P = √v̂ + ε (Cohen et al. 2022)"},
    Quantity{"snr", on_demand, false,
             "after each block, signal to noise in dB when white noise 40 dB below the embedding joins it: 10·log10 of "
             "⟨‖x‖²⟩/⟨‖Δx‖²⟩, each sequence's mean over tokens removed from both; token stacks only"},
    Quantity{"snr_raw", on_demand, false, "the same with the mean over tokens kept, which hides rank collapse"},
    Quantity{"lesion", on_demand, false,
             "the loss with one block left out; without a layer the loss of the whole stack"},
    Quantity{"cka", on_demand, false,
             "linear CKA (Kornblith et al. 2019) of the stream after each block with that after the last block"},
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

std::set<std::string_view> on_demand_among(const std::set<std::string_view>& names) {
  std::set<std::string_view> found = names;
  std::erase_if(found, [](std::string_view name) { return find_quantity(name)->set != on_demand; });
  return found;
}

bool look_inside(std::span<const std::string> words) {
  const std::set<std::string_view> names = quantities_asked_for(words);
  return std::any_of(names.begin(), names.end(), [](std::string_view name) { return find_quantity(name)->inside; });
}

std::string on_demand_table() {
  std::string table = "| name | what is measured |\n| --- | --- |\n";
  for (const Quantity& quantity : quantities)
    if (quantity.set == on_demand)
      table += "| `" + std::string(quantity.name) + "` | " + std::string(quantity.meaning) + " |\n";
  return table;
}

std::span<const std::string_view> quantity_words() { return words; }

}  // namespace gradflow
